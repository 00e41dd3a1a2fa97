//! MySQL's dialect for sqlparser, with corrections and additions to sqlparser's own.
//!
//! - `&&` binds like AND and `||` like OR (sqlparser: like `|` and like `*`). The operators in the
//!   tree stay `And` and `StringConcat`; in MySQL's default mode the latter means OR. With PIPES_AS_CONCAT `||` binds more than
//!   arithmetic, and is a call of CONCAT.
//! - XOR binds less than AND and more than OR (sqlparser: more than a comparison).
//! - `DIV` is left-associative and binds like `*` (sqlparser lets it swallow all that follows).
//! - `INTERVAL(n, a, b)` and `CHAR(n USING utf8)` are calls, and `* EXCEPT (a, b)` leaves columns out.
//! - `INTERVAL '1:30' HOUR_MINUTE` and `EXTRACT(HOUR_MINUTE FROM x)`, `CAST(x AS MAP<K, V>)`, and `sum(x) FILTER (WHERE y)` exist.
//! - `a MATCH_ANY 'x'` and its likes are calls.
//! - `a MOD b`, `!a`, `TRIM(a, b)`, and Doris's lambdas (`x -> x + 1`) and maps and structs (`{'k': 1}`, `{1, 'x'}`) exist.
//! - Work is bounded: sqlparser tries alternatives again and again, which grows exponentially with
//!   nesting. Each parser counts the operands it has begun and gives up at a multiple of the tokens.

use crate::braces;
use crate::modes::Reading;
use crate::special_calls;
use sqlparser::ast::{BinaryOperator, Expr, Statement, UnaryOperator};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::any::TypeId;
use std::cell::Cell;

/// Limit on the operands that a statement may start, whatever its length.
const OPERANDS_BASE: usize = 10_000;
/// Additional operands that a statement may start per token.
const OPERANDS_PER_TOKEN: usize = 8;
/// Words that MySQL reserves and that [`crate::chains`] relies on never being names.
const NEVER_OPERANDS: [Keyword; 4] = [Keyword::SELECT, Keyword::WHEN, Keyword::THEN, Keyword::ELSE];
/// Between OR and AND.
const XOR_PRECEDENCE: u8 = 7;
/// Doris's operators that look for words in a text, and the functions that do it.
const MATCHES: [(&str, &str); 5] = [
    ("match_any", "match_any"),
    ("match_all", "match_all"),
    ("match_phrase", "match_phrase"),
    ("match_phrase_prefix", "match_phrase_prefix"),
    ("match", "match_any"),
];
/// Of a `||` that concatenates: more than `*`, less than signs.
const CONCAT_PRECEDENCE: u8 = 45;
/// The parser's report when it gives up.
pub(crate) const TOO_COMPLEX: &str = "statement too complex";

/// The dialect of one statement: it holds the statement's budget.
#[derive(Debug)]
pub(crate) struct Grammar {
    mysql: MySqlDialect,
    operands_left: Cell<usize>,
    /// Whether `FILTER (WHERE` is in the statement: to the parser, FILTER could not be a name then.
    has_filters: Cell<bool>,
    /// Whether `||` concatenates.
    pipes_concatenate: bool,
}

impl Grammar {
    /// A dialect that does not limit work, for tokenizing.
    pub(crate) fn new() -> Self {
        Self {
            mysql: MySqlDialect {},
            operands_left: Cell::new(usize::MAX),
            has_filters: Cell::new(false),
            pipes_concatenate: false,
        }
    }

    /// [`Grammar::new`] for statements that are read so.
    pub(crate) fn of(reading: Reading) -> Self {
        Self { pipes_concatenate: reading.pipes_concatenate, ..Self::new() }
    }

    /// `NOT EXISTS (…)`. The NOT is about everything up to the next AND, XOR or OR, as any other is.
    fn not_exists(&self, parser: &mut Parser) -> Result<Expr, ParserError> {
        parser.advance_token();
        Ok(match parser.parse_subexpr(self.prec_value(Precedence::UnaryNot))? {
            Expr::Exists { subquery, negated: false } => Expr::Exists { subquery, negated: true },
            operand => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(operand) },
        })
    }

    /// An operand with a sign in front, which binds more than a `||` that concatenates.
    fn signed(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let op = match parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            Token::Tilde => UnaryOperator::BitwiseNot,
            _ => return None,
        };
        parser.advance_token();
        let operand = parser.parse_subexpr(CONCAT_PRECEDENCE);
        Some(operand.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
    }

    /// Sets the budget for a statement of that many tokens.
    pub(crate) fn limit(&self, tokens: usize) {
        self.operands_left.set(OPERANDS_BASE.saturating_add(tokens.saturating_mul(OPERANDS_PER_TOKEN)));
    }

    /// Looks at the tokens of the statement to be parsed.
    pub(crate) fn note(&self, tokens: &[TokenWithSpan]) {
        let is = |token: &TokenWithSpan, keyword: Keyword| matches!(&token.token, Token::Word(word) if is_bare(word) && word.keyword == keyword);
        self.has_filters.set(tokens.windows(3).any(|three| {
            is(&three[0], Keyword::FILTER) && three[1].token == Token::LParen && is(&three[2], Keyword::WHERE)
        }));
    }

    fn infix_operator(parser: &mut Parser) -> Option<BinaryOperator> {
        if parser.parse_keyword(Keyword::DIV) {
            return Some(BinaryOperator::MyIntegerDivide);
        }
        if is_infix_mod(parser) {
            parser.advance_token();
            return Some(BinaryOperator::Modulo);
        }
        None
    }
}

/// Whether the next tokens are NOT EXISTS, which sqlparser takes for one operator that binds more than others.
fn is_not_exists(parser: &Parser) -> bool {
    let is = |token: &Token, keyword| matches!(token, Token::Word(word) if is_bare(word) && word.keyword == keyword);
    is(&parser.peek_token_ref().token, Keyword::NOT)
        && is(&parser.peek_nth_token_ref(1).token, Keyword::EXISTS)
}

/// Whether the next token is the operator MOD and not a name: an operand must follow.
fn is_infix_mod(parser: &Parser) -> bool {
    let is_mod = matches!(&parser.peek_token_ref().token, Token::Word(word) if is_bare(word) && word.value.eq_ignore_ascii_case("mod"));
    is_mod && begins_operand(&parser.peek_nth_token_ref(1).token)
}

/// Whether an operand may begin so, behind a word that may also be an alias.
fn begins_operand(token: &Token) -> bool {
    match token {
        Token::Number(..)
        | Token::LParen
        | Token::Placeholder(_)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_) => true,
        Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
        _ => false,
    }
}

/// The function of an operator that looks for words, if one is next, and whether NOT is in front of it.
fn infix_match(parser: &Parser) -> Option<(&'static str, bool)> {
    let negated = matches!(&parser.peek_token_ref().token, Token::Word(word) if is_bare(word) && word.keyword == Keyword::NOT);
    let at = usize::from(negated);
    let Token::Word(word) = &parser.peek_nth_token_ref(at).token else { return None };
    let (name, function) =
        MATCHES.into_iter().find(|(name, _)| is_bare(word) && word.value.eq_ignore_ascii_case(name))?;
    let operand = &parser.peek_nth_token_ref(at + 1).token;
    // MATCH is a name more often than an operator.
    let is_operator = match name {
        "match" => matches!(operand, Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)),
        _ => begins_operand(operand),
    };
    is_operator.then_some((function, negated))
}

fn is_bare(word: &Word) -> bool {
    word.quote_style.is_none()
}

macro_rules! as_mysql {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool { self.mysql.$name() })*
    };
}

impl Dialect for Grammar {
    fn dialect(&self) -> TypeId {
        self.mysql.dialect()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.mysql.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.mysql.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.mysql.is_delimited_identifier_start(ch)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.mysql.identifier_quote_style(identifier)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        keyword == Keyword::CASE || self.mysql.is_reserved_for_identifier(keyword)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if let Token::Word(word) = &parser.peek_token_ref().token
            && NEVER_OPERANDS.contains(&word.keyword)
        {
            return Some(parser.expected_ref("an expression", parser.peek_token_ref()));
        }
        let left = self.operands_left.get();
        if left == 0 {
            return Some(Err(ParserError::ParserError(TOO_COMPLEX.to_owned())));
        }
        self.operands_left.set(left - 1);
        if braces::begin(parser) {
            return Some(braces::parse(parser));
        }
        if special_calls::begin(parser) {
            return Some(special_calls::parse(parser));
        }
        if is_not_exists(parser) {
            return Some(self.not_exists(parser));
        }
        if self.pipes_concatenate { Self::signed(parser) } else { None }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        let precedence = match &parser.peek_token_ref().token {
            Token::Overlap => Precedence::And,
            Token::StringConcat if self.pipes_concatenate => return Some(Ok(CONCAT_PRECEDENCE)),
            Token::StringConcat => Precedence::Or,
            Token::Word(_) if is_infix_mod(parser) => Precedence::MulDivModOp,
            Token::Word(_) if infix_match(parser).is_some() => Precedence::Like,
            // A name, perhaps an alias.
            Token::Word(word) if is_bare(word) && word.keyword == Keyword::MATCH => {
                return Some(Ok(self.prec_unknown()));
            }
            // Between parts of maps and of arrays; to sqlparser an operator on JSON.
            Token::Colon => return Some(Ok(self.prec_unknown())),
            _ => return None,
        };
        Some(Ok(self.prec_value(precedence)))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            // XOR as a word; `^` has the precedence of a caret.
            Precedence::Xor => XOR_PRECEDENCE,
            other => self.mysql.prec_value(other),
        }
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if self.pipes_concatenate && parser.consume_token(&Token::StringConcat) {
            let right = parser.parse_subexpr(precedence);
            return Some(right.map(|right| braces::call("concat", vec![left.clone(), right])));
        }
        if let Some((function, negated)) = infix_match(parser) {
            (0..=usize::from(negated)).for_each(|_| parser.advance_token());
            let words = parser.parse_subexpr(precedence);
            return Some(words.map(|words| {
                let found = braces::call(function, vec![left.clone(), words]);
                match negated {
                    true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(found) },
                    false => found,
                }
            }));
        }
        let op = Self::infix_operator(parser)?;
        Some(parser.parse_subexpr(precedence).map(|right| Expr::BinaryOp {
            left: Box::new(left.clone()),
            op,
            right: Box::new(right),
        }))
    }

    fn parse_statement(&self, _parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        None
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser) -> bool {
        // MySQL reserves INTO, which ends a query that writes files.
        let locks = *keyword == Keyword::LOCK && parser.peek_keyword(Keyword::IN);
        *keyword != Keyword::INTO && !locks && self.mysql.is_table_factor_alias(explicit, keyword, parser)
    }

    fn is_select_item_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser) -> bool {
        // MySQL reserves FOR and LOCK, which may follow a list without FROM.
        let locks = match keyword {
            Keyword::FOR => parser.peek_keyword(Keyword::UPDATE) || parser.peek_keyword(Keyword::SHARE),
            Keyword::LOCK => parser.peek_keyword(Keyword::IN),
            _ => false,
        };
        !locks && self.mysql.is_select_item_alias(explicit, keyword, parser)
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        self.has_filters.get()
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn supports_bang_not_operator(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    as_mysql!(
        supports_string_literal_backslash_escape,
        supports_string_literal_concatenation,
        ignores_wildcard_escapes,
        supports_numeric_prefix,
        supports_bitwise_shift_operators,
        supports_multiline_comment_hints,
        require_interval_qualifier,
        supports_limit_comma,
        supports_create_table_select,
        supports_insert_set,
        supports_user_host_grantee,
        supports_table_hints,
        requires_single_line_comment_whitespace,
        supports_match_against,
        supports_select_modifiers,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_update_order_by,
        supports_data_type_signed_suffix,
        supports_cross_join_constraint,
        supports_double_ampersand_operator,
        supports_binary_kw_as_cast,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
    );
}
