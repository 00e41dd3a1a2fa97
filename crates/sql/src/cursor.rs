//! A position in a statement's tokens, with the primitives of a hand-written grammar.
//!
//! Words are compared without regard to case and only when they are not quoted. A step that fails
//! leaves the place where it was, unless it says otherwise.

use crate::ast::{INTERNAL_CATALOG, Name};
use crate::dialect::Grammar;
use crate::errors::{self, Parsed};
use crate::limits::DEPTH_MAX;
use crate::modes::Reading;
use crate::parse::compat::Mapped;
use sqlparser::ast::{Expr, Query, TableWithJoins};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use tributary_types::{ErrorCode, SqlError};

pub(crate) struct Cursor<'a> {
    sql: &'a str,
    parser: Parser<'a>,
    /// Of the parts that only MySQL has, the replacements so far. `None`: each is refused.
    notes: Option<Vec<String>>,
    /// Whether a column REAL is a FLOAT.
    real_is_float: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(sql: &'a str, grammar: &'a Grammar, tokens: Vec<TokenWithSpan>) -> Self {
        let parser = Parser::new(grammar).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens);
        Self { sql, parser, notes: None, real_is_float: false }
    }

    /// Reads the statement as the session does.
    pub(crate) fn read_as(&mut self, reading: Reading) {
        self.notes = reading.is_compatible.then(Vec::new);
        self.real_is_float = reading.real_is_float;
    }

    pub(crate) const fn real_is_float(&self) -> bool {
        self.real_is_float
    }

    pub(crate) const fn is_compatible(&self) -> bool {
        self.notes.is_some()
    }

    /// The replacements that a compatible parse made, as sentences.
    pub(crate) fn into_notes(self) -> Vec<String> {
        self.notes.unwrap_or_default()
    }

    /// Replaces a part that only MySQL has.
    ///
    /// # Errors
    /// The parse is strict.
    pub(crate) fn map(&mut self, mapped: Mapped) -> Parsed<()> {
        match &mut self.notes {
            None => return Err(mapped.refusal()),
            Some(_) if mapped.note.is_empty() => {}
            Some(notes) => notes.push(mapped.note),
        }
        Ok(())
    }

    /// The text that the tokens' positions count from.
    pub(crate) fn sql(&self) -> &'a str {
        self.sql
    }

    /// The offset of the next token, in bytes from the beginning of the text.
    pub(crate) fn offset(&self) -> usize {
        if self.at_end() {
            return self.sql.len();
        }
        offset_of(self.sql, self.parser.peek_token_ref().span.start)
    }

    pub(crate) fn peek(&self) -> &Token {
        &self.parser.peek_token_ref().token
    }

    pub(crate) fn peek_nth(&self, n: usize) -> &Token {
        &self.parser.peek_nth_token_ref(n).token
    }

    pub(crate) fn at_end(&self) -> bool {
        *self.peek() == Token::EOF
    }

    /// The next token if it is an unquoted word.
    pub(crate) fn word(&self) -> Option<&str> {
        bare_word(self.peek())
    }

    /// Whether the next token is this word.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.is_nth(0, word)
    }

    pub(crate) fn is_nth(&self, n: usize, word: &str) -> bool {
        bare_word(self.peek_nth(n)).is_some_and(|found| found.eq_ignore_ascii_case(word))
    }

    pub(crate) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    pub(crate) fn advance(&mut self) {
        self.parser.advance_token();
    }

    /// Takes the word if it is next.
    pub(crate) fn eat(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.advance();
        }
        found
    }

    /// Consumes these words (separated by blanks) if all of them are next, otherwise none.
    pub(crate) fn eat_all(&mut self, words: &str) -> bool {
        let found = words.split(' ').enumerate().all(|(n, word)| self.is_nth(n, word));
        if found {
            words.split(' ').for_each(|_| self.advance());
        }
        found
    }

    /// Takes the first of the words that is next.
    pub(crate) fn eat_any<'w>(&mut self, words: &[&'w str]) -> Option<&'w str> {
        words.iter().copied().find(|word| self.eat(word))
    }

    pub(crate) fn expect(&mut self, word: &str) -> Parsed<()> {
        if self.eat(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    pub(crate) fn eat_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn expect_token(&mut self, token: &Token) -> Parsed<()> {
        if self.eat_token(token) { Ok(()) } else { Err(self.expected(&format!("'{token}'"))) }
    }

    pub(crate) fn expect_end(&mut self) -> Parsed<()> {
        while self.eat_token(&Token::SemiColon) {}
        if self.at_end() { Ok(()) } else { Err(self.expected("the end of the statement")) }
    }

    /// A name: a word, quoted or not.
    pub(crate) fn identifier(&mut self, what: &str) -> Parsed<String> {
        match self.peek() {
            Token::Word(word) if word.quote_style != Some('"') => {
                let name = word.value.clone();
                self.advance();
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A text in single or double quotes.
    pub(crate) fn string(&mut self, what: &str) -> Parsed<String> {
        match self.peek() {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                let text = text.clone();
                self.advance();
                Ok(text)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A name or a text in quotes.
    pub(crate) fn identifier_or_string(&mut self, what: &str) -> Parsed<String> {
        match self.peek() {
            Token::Word(_) => self.identifier(what),
            _ => self.string(what),
        }
    }

    /// A whole number without a sign.
    pub(crate) fn number<N: std::str::FromStr>(&mut self, what: &str) -> Parsed<N> {
        let number = match self.peek() {
            Token::Number(text, false) => text.parse().ok(),
            _ => None,
        };
        match number {
            Some(number) => {
                self.advance();
                Ok(number)
            }
            None => Err(self.expected(what)),
        }
    }

    /// `[internal.][db.]table`
    pub(crate) fn name(&mut self) -> Parsed<Name> {
        let mut parts = vec![self.identifier("a table name")?];
        while parts.len() < 3 && self.eat_token(&Token::Period) {
            parts.push(self.identifier("a name after '.'")?);
        }
        if parts.len() == 3 {
            check_catalog(&parts.remove(0))?;
        }
        let table = parts.pop().unwrap_or_default();
        Ok(Name { db: parts.pop(), table })
    }

    /// `[internal.]db`
    pub(crate) fn database(&mut self) -> Parsed<String> {
        let name = self.identifier("a database name")?;
        if !self.eat_token(&Token::Period) {
            return Ok(name);
        }
        check_catalog(&name)?;
        self.identifier("a database name")
    }

    /// `item, item, …`, at least one.
    pub(crate) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `(item, item, …)`, at least one.
    pub(crate) fn parenthesized<T>(&mut self, item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.expect_token(&Token::LParen)?;
        let items = self.list(item)?;
        self.expect_token(&Token::RParen)?;
        Ok(items)
    }

    /// An expression as it is written.
    pub(crate) fn expression_text(&mut self) -> Parsed<String> {
        let begin = self.offset();
        self.expr()?;
        Ok(self.sql[begin..self.offset()].trim().to_owned())
    }

    /// An expression. The place is undefined after an error.
    pub(crate) fn expr(&mut self) -> Parsed<Expr> {
        self.parser.parse_expr().map_err(|error| self.translate(error))
    }

    /// A query. The place is undefined after an error.
    pub(crate) fn query(&mut self) -> Parsed<Box<Query>> {
        self.parser.parse_query().map_err(|error| self.translate(error))
    }

    /// Tables and joins as in a FROM clause. The place is undefined after an error.
    pub(crate) fn relations(&mut self) -> Parsed<Vec<TableWithJoins>> {
        let relations = self.parser.parse_comma_separated(Parser::parse_table_and_joins);
        relations.map_err(|error| self.translate(error))
    }

    /// The error that something else was expected here.
    pub(crate) fn expected(&self, what: &str) -> SqlError {
        errors::expected(self.sql, what, self.parser.peek_token_ref())
    }

    fn translate(&self, error: sqlparser::parser::ParserError) -> SqlError {
        errors::translate(self.sql, error, self.parser.peek_token_ref())
    }
}

/// The byte offset of a location in a text.
pub(crate) fn offset_of(sql: &str, at: Location) -> usize {
    let line = sql.split_inclusive('\n').take(at.line.saturating_sub(1) as usize);
    let line: usize = line.map(str::len).sum();
    let in_line = sql[line..].char_indices().nth(at.column.saturating_sub(1) as usize);
    in_line.map_or(sql.len(), |(offset, _)| line + offset)
}

/// Whether a token is this word, in any case and without quotes.
pub(crate) fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    bare_word(&token.token).is_some_and(|found| found.eq_ignore_ascii_case(word))
}

fn bare_word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(&word.value),
        _ => None,
    }
}

fn check_catalog(name: &str) -> Parsed<()> {
    if name == INTERNAL_CATALOG {
        return Ok(());
    }
    Err(SqlError::detail(
        ErrorCode::Unknown,
        format!("Unknown catalog '{name}': there is one catalog, '{INTERNAL_CATALOG}'"),
    ))
}
