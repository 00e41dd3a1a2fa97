//! Random expressions of a kind.

use super::functions::{self, Arg, BETWEEN, COMPARISONS, JUNCTIONS, LIKES, NULLNESS, TRUTH};
use super::{Generator, Scope, Visible};
use crate::ast::{CastTo, Expr, Literal, Op};
use crate::kinds::common;
use crate::schema::Kind;
use rand::Rng;

/// The permitted contents of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// How many operations deep it may be.
    pub depth: u32,
    /// How many queries deep it may be.
    pub queries: u32,
}

impl Room {
    pub fn flat(depth: u32) -> Self {
        Self { depth, queries: 0 }
    }

    fn less(self) -> Self {
        Self { depth: self.depth.saturating_sub(1), ..self }
    }
}

impl Generator<'_> {
    /// A column of the kind, if there is one in reach.
    fn column(&mut self, scope: &Scope, kind: Kind) -> Option<Expr> {
        let columns: Vec<&Visible> = scope.columns.iter().filter(|column| column.kind == kind).collect();
        let outer: Vec<&Visible> = scope.outer.iter().filter(|column| column.kind == kind).collect();
        let from = if !outer.is_empty() && (columns.is_empty() || self.chance(25)) { outer } else { columns };
        if from.is_empty() { None } else { Some(self.pick(&from).expr()) }
    }

    fn leaf(&mut self, scope: &Scope, kind: Kind) -> Expr {
        if self.chance(82)
            && let Some(column) = self.column(scope, kind)
        {
            return column;
        }
        self.literal(kind)
    }

    pub(super) fn literal(&mut self, kind: Kind) -> Expr {
        if self.chance(5) && self.is_mariadb() {
            return Expr::null(kind);
        }
        let text = |this: &mut Self, from: &[&str]| (*this.pick(from)).to_owned();
        let literal = match kind {
            Kind::Int => Literal::Int(*self.pick(&[0, 1, 2, 3, 5, -1, -2, 7, 10, 100, 1000, 40000])),
            Kind::Decimal => Literal::Decimal(text(self, &["0.5", "1.5", "2.75", "-1.25", "10.00", "0.05"])),
            Kind::Double => Literal::Double(text(self, &["0e0", "1.5e0", "-2.5e0", "1e3", "1e-1", "2e0"])),
            Kind::Text => {
                Literal::Text(text(self, &["", "a", "b", "abc", "A", "12", "x1", " b", "it's", "ä"]))
            }
            Kind::Date => Literal::Date {
                text: text(self, &["2020-01-31", "2000-06-15", "1999-12-31", "2024-02-29"]),
                bare: false,
            },
            Kind::DateTime => Literal::DateTime {
                text: text(self, &["2020-01-31 00:00:00", "2000-06-15 06:07:08", "2020-02-29 12:30:45.5"]),
                bare: false,
            },
            Kind::Bool => Literal::Bool(self.chance(50)),
        };
        Expr::literal(literal, kind)
    }

    /// An expression of the kind, or of one that its context takes as well.
    pub(super) fn expr(&mut self, scope: &Scope, kind: Kind, room: Room) -> Expr {
        if room.depth == 0 || self.chance(20) {
            return self.leaf(scope, kind);
        }
        let room = room.less();
        if room.queries > 0 && self.chance(6) {
            return self.scalar_query(scope, kind, room);
        }
        if kind == Kind::Bool {
            return self.condition(scope, room);
        }
        match self.below(10) {
            0 | 1 => self.choice(scope, kind, room),
            2 => self.cast(scope, kind, room),
            _ => {
                let functions = functions::of(kind, !self.is_mariadb());
                if functions.is_empty() {
                    return self.leaf(scope, kind);
                }
                let function = &functions[self.below(functions.len())];
                let args = function.args.iter().map(|&arg| self.arg(scope, arg, room)).collect();
                Expr::new(function.op(), function.result, args)
            }
        }
    }

    fn arg(&mut self, scope: &Scope, arg: Arg, room: Room) -> Expr {
        match arg {
            Arg::Of(kind) => self.expr(scope, kind, room),
            Arg::Number => {
                let kind = self.number_kind();
                self.expr(scope, kind, room)
            }
            Arg::Small(from, to) => {
                let number = self.rng.random_range(from..=to);
                Expr::literal(Literal::Int(number), Kind::Int)
            }
            Arg::Text(texts) => Expr::literal(Literal::Text((*self.pick(texts)).to_owned()), Kind::Text),
        }
    }

    /// A kind that mixes well with this one where one of several values is taken.
    fn neighbour(&mut self, kind: Kind) -> Kind {
        match kind {
            Kind::Int | Kind::Decimal | Kind::Double => self.number_kind(),
            Kind::Date | Kind::DateTime if self.is_mariadb() && self.chance(30) => {
                *self.pick(&[Kind::Date, Kind::DateTime])
            }
            Kind::Text if self.is_mariadb() && self.chance(20) => *self.pick(&[Kind::Int, Kind::Date]),
            kind => kind,
        }
    }

    /// One of several values: CASE, IF, COALESCE, …
    fn choice(&mut self, scope: &Scope, kind: Kind, room: Room) -> Expr {
        let value = |this: &mut Self| {
            let kind = this.neighbour(kind);
            this.expr(scope, kind, room)
        };
        // Comparisons take values of one kind.
        let form = self.below(if self.is_mariadb() { 9 } else { 5 });
        let (first, second) = if matches!(form, 1 | 7 | 8) && !kind.is_number() {
            (self.expr(scope, kind, room), self.expr(scope, kind, room))
        } else {
            (value(self), value(self))
        };
        let call = |name, args: Vec<Expr>| {
            let kind = common(args.iter().map(|arg| arg.kind));
            Expr::new(Op::Call(name), kind, args)
        };
        match form {
            0 => call("COALESCE", vec![first, second]),
            1 => Expr::new(Op::Call("NULLIF"), first.kind, vec![first, second]),
            2 => {
                let condition = self.expr(scope, Kind::Bool, room);
                let kind = common([first.kind, second.kind].into_iter());
                let op = Op::Case { operand: false, otherwise: true };
                Expr::new(op, kind, vec![condition, first, second])
            }
            3 => {
                let condition = self.expr(scope, Kind::Bool, room);
                let op = Op::Case { operand: false, otherwise: false };
                Expr::new(op, first.kind, vec![condition, first])
            }
            4 => {
                let compared = self.any_kind();
                let (operand, when) = (self.expr(scope, compared, room), self.leaf(scope, compared));
                let kind = common([first.kind, second.kind].into_iter());
                let op = Op::Case { operand: true, otherwise: true };
                Expr::new(op, kind, vec![operand, when, first, second])
            }
            5 => {
                let condition = self.expr(scope, Kind::Bool, room);
                let kind = common([first.kind, second.kind].into_iter());
                Expr::new(Op::Call("IF"), kind, vec![condition, first, second])
            }
            6 => call("IFNULL", vec![first, second]),
            7 => call("GREATEST", vec![first, second]),
            _ => call("LEAST", vec![first, second]),
        }
    }

    fn cast(&mut self, scope: &Scope, kind: Kind, room: Room) -> Expr {
        let mixed = self.is_mariadb();
        let (to, from) = match kind {
            Kind::Int => (CastTo::Signed, *self.pick(&[Kind::Int, Kind::Bool])),
            Kind::Decimal => {
                let (digits, scale) = *self.pick(&[(20, 4), (20, 1), (12, 2), (20, 0)]);
                (CastTo::Decimal(digits, scale), *self.pick(&[Kind::Int, Kind::Decimal]))
            }
            Kind::Double => (CastTo::Double, self.number_kind()),
            Kind::Text if mixed => (
                CastTo::Char,
                *self.pick(&[Kind::Int, Kind::Decimal, Kind::Text, Kind::Date, Kind::DateTime]),
            ),
            Kind::Text => (CastTo::Char, *self.pick(&[Kind::Int, Kind::Text, Kind::Date])),
            Kind::Date => (CastTo::Date, *self.pick(&[Kind::Date, Kind::DateTime])),
            Kind::DateTime => {
                (CastTo::DateTime(*self.pick(&[0, 3, 6])), *self.pick(&[Kind::Date, Kind::DateTime]))
            }
            Kind::Bool => return self.leaf(scope, kind),
        };
        // DuckDB's TIMESTAMP has all digits.
        let to = if mixed || !matches!(to, CastTo::DateTime(_)) { to } else { CastTo::DateTime(6) };
        Expr::new(Op::Cast(to), kind, vec![self.expr(scope, from, room)])
    }

    /// Two kinds that may be compared.
    fn comparable(&mut self) -> (Kind, Kind) {
        let kind = self.any_kind();
        let other = match kind {
            kind if kind.is_number() => self.number_kind(),
            Kind::Date | Kind::DateTime if self.is_mariadb() && self.chance(40) => {
                *self.pick(&[Kind::Date, Kind::DateTime])
            }
            Kind::Bool if self.is_mariadb() && self.chance(30) => Kind::Int,
            kind => kind,
        };
        if self.chance(50) { (kind, other) } else { (other, kind) }
    }

    /// An expression that is true, false or NULL.
    fn condition(&mut self, scope: &Scope, room: Room) -> Expr {
        let boolean = |op, args| Expr::new(op, Kind::Bool, args);
        match self.below(20) {
            0 if self.is_mariadb() => {
                // Texts that are whole numbers: of others, MySQL takes the leading digits, and Doris NULL.
                let kind = self.number_kind();
                let text = (*self.pick(&["12", "-3", "1.5", "0", "2"])).to_owned();
                let mut args =
                    vec![self.expr(scope, kind, room), Expr::literal(Literal::Text(text), Kind::Text)];
                if self.chance(50) {
                    args.reverse();
                }
                boolean(Op::Form(&COMPARISONS[self.below(COMPARISONS.len())]), args)
            }
            0..=6 => {
                let form = &COMPARISONS[self.below(COMPARISONS.len())];
                let (left, right) = self.comparable();
                let mut args = vec![self.expr(scope, left, room), self.expr(scope, right, room)];
                // A date or datetime may be a text next to a column.
                if self.is_mariadb()
                    && self.chance(50)
                    && matches!(args[0].op, Op::Column { .. })
                    && let Op::Literal(Literal::Date { bare, .. } | Literal::DateTime { bare, .. }) =
                        &mut args[1].op
                {
                    *bare = true;
                }
                boolean(Op::Form(form), args)
            }
            7..=10 => {
                let form = &JUNCTIONS[self.below(if self.is_mariadb() { 3 } else { 2 })];
                let args = vec![self.expr(scope, Kind::Bool, room), self.expr(scope, Kind::Bool, room)];
                boolean(Op::Form(form), args)
            }
            11 | 12 => {
                let form = &TRUTH[self.below(TRUTH.len())];
                boolean(Op::Form(form), vec![self.expr(scope, Kind::Bool, room)])
            }
            13 => {
                let kind = self.any_kind();
                let form = &NULLNESS[self.below(NULLNESS.len())];
                boolean(Op::Form(form), vec![self.expr(scope, kind, room)])
            }
            14 => {
                let (left, right) = self.comparable();
                let form = &BETWEEN[self.below(BETWEEN.len())];
                let args =
                    vec![self.expr(scope, left, room), self.leaf(scope, right), self.leaf(scope, right)];
                boolean(Op::Form(form), args)
            }
            15 | 16 => {
                let (left, right) = self.comparable();
                let mut args = vec![self.expr(scope, left, room)];
                for _ in 0..=self.below(3) {
                    let kind = if left.is_number() { self.number_kind() } else { right };
                    args.push(if self.chance(70) { self.literal(kind) } else { self.leaf(scope, kind) });
                }
                boolean(Op::In { negated: self.chance(40) }, args)
            }
            17 => {
                let pattern = *self.pick(&["a%", "%b%", "_", "%", "", "A_%", "%1", "a\u{5f}b"]);
                let pattern = Expr::literal(Literal::Text(pattern.to_owned()), Kind::Text);
                let form = &LIKES[self.below(LIKES.len())];
                boolean(Op::Form(form), vec![self.expr(scope, Kind::Text, room), pattern])
            }
            _ if room.queries > 0 => self.query_condition(scope, room),
            _ => self.leaf(scope, Kind::Bool),
        }
    }

    /// A condition with a query in it.
    fn query_condition(&mut self, scope: &Scope, room: Room) -> Expr {
        let (left, right) = self.comparable();
        match self.below(5) {
            0 | 1 => {
                let query = self.column_query(scope, right, room);
                let negated = self.chance(45);
                Expr::with_query(
                    Op::InQuery { negated },
                    Kind::Bool,
                    vec![self.expr(scope, left, room)],
                    query,
                )
            }
            2 | 3 if self.is_mariadb() || self.chance(50) => {
                let query = self.column_query(scope, right, room);
                let operator = *self.pick(&["=", "<>", "<", "<=", ">", ">="]);
                let op = Op::Quantified { operator, all: self.chance(50) };
                Expr::with_query(op, Kind::Bool, vec![self.expr(scope, left, room)], query)
            }
            _ => {
                let query = self.column_query(scope, right, room);
                let negated = self.chance(40);
                Expr::with_query(Op::Exists { negated }, Kind::Bool, Vec::new(), query)
            }
        }
    }
}
