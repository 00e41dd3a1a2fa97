//! The cheapest order of the joins of a region.
//!
//! Up to [`ALL_MAX`] relations all orders are compared in which each join has a key; above that, the pair whose join has the fewest
//! rows is joined first, and so on. A join costs the rows that it puts into a hash table, on one thread, the rows that it looks up,
//! and the rows that it makes.

use super::estimates::{common_values, rows, rows_in_all, values};
use super::graph::{Order, Region, Set};
use datafusion::logical_expr::LogicalPlan;
use std::collections::HashMap;

/// Relations of which all orders are compared.
const ALL_MAX: usize = 10;
/// The cost of a row that is put into a hash table, beside one that is looked up.
const BUILT: f64 = 3.0;
/// The share of rows that a condition beside the keys leaves.
const CONDITION: f64 = 0.5;

/// The cheapest order, if it costs at most this share of the written one, and everything that it is judged by is known.
pub(super) fn cheaper(region: &Region, share: f64) -> Option<Order> {
    let mut search = Search::of(region)?;
    let once: f64 = search.rows.iter().map(|rows| rows.max(1.0)).sum();
    let (written, _) = search.cost(&region.written);
    let best = match region.relations.len() {
        ..=ALL_MAX => search.best()?,
        _ => search.greedy()?,
    };
    let is_less = best.cost - once <= (written - once) * share;
    (is_less && best.order != region.written).then_some(best.order)
}

/// Relations that have a column of the same values, and the number of these values.
type Class = (Set, f64);

/// An order, and what it costs.
struct Plan {
    cost: f64,
    order: Order,
}

struct Search<'a> {
    region: &'a Region,
    /// Rows of each relation, and without its filters.
    rows: Vec<f64>,
    in_all: Vec<f64>,
    /// The relations of each class, and its different values.
    classes: Vec<Class>,
    /// The relations that have a key in common with each.
    neighbours: Vec<Set>,
    known: HashMap<Set, f64>,
}

impl<'a> Search<'a> {
    fn of(region: &'a Region) -> Option<Self> {
        let relations = &region.relations;
        let all =
            |of: fn(&LogicalPlan) -> Option<f64>| relations.iter().map(of).collect::<Option<Vec<f64>>>();
        let (left, in_all) = (all(rows)?, all(rows_in_all)?);
        let mut classes = Vec::with_capacity(region.classes.len());
        let mut neighbours = vec![0; relations.len()];
        for class in &region.classes {
            let of = class.keys.iter().map(|(relation, key)| values(&relations[*relation], key));
            let of: Vec<f64> = of.collect::<Option<_>>()?;
            let members = class.relations();
            classes.push((members, common_values(of.into_iter())));
            class.keys.iter().for_each(|(relation, _)| neighbours[*relation] |= members & !(1 << *relation));
        }
        Some(Self { region, rows: left, in_all, classes, neighbours, known: HashMap::new() })
    }

    fn next_to(&self, set: Set) -> Set {
        members(set).fold(0, |all, relation| all | self.neighbours[relation])
    }

    /// Rows of the join of these relations: the same in whatever order they are joined.
    fn rows_of(&mut self, set: Set) -> f64 {
        if let Some(rows) = self.known.get(&set) {
            return *rows;
        }
        let last = Set::BITS as usize - 1 - set.leading_zeros() as usize;
        let others = set & !(1 << last);
        let mut rows = self.rows[last];
        if others != 0 {
            rows *= self.rows_of(others) / self.keys_between(others, last);
            let of = self.region.conditions.iter().map(|condition| condition.relations);
            let here = of.filter(|of| of & !set == 0 && of & 1 << last != 0 && of & others != 0);
            rows *= CONDITION.powi(here.count() as i32);
        }
        self.known.insert(set, rows);
        rows
    }

    /// The different values of the keys that a relation has in common with others. Of several keys together there are not more than
    /// rows with them.
    fn keys_between(&self, others: Set, last: usize) -> f64 {
        let common = |(of, _): &&Class| *of & 1 << last != 0 && *of & others != 0;
        let mut classes: Vec<&Class> = self.classes.iter().filter(common).collect();
        let mut all = 1.0;
        while !classes.is_empty() {
            let count = |other: &usize| classes.iter().filter(|(of, _)| *of & 1 << *other != 0).count();
            let Some(other) = members(others).max_by_key(count) else { break };
            let (here, elsewhere): (Vec<&Class>, Vec<&Class>) =
                classes.into_iter().partition(|(of, _)| *of & 1 << other != 0);
            let keys: f64 = here.iter().map(|(_, values)| values).product();
            all *= match here.len() {
                ..=1 => keys,
                _ => keys.min(self.in_all[other].min(self.in_all[last])),
            };
            classes = elsewhere;
        }
        all.max(1.0)
    }

    /// The cost of the join of two sets by itself.
    fn join_cost(&mut self, left: Set, right: Set) -> f64 {
        cost_of(self.rows_of(left), self.rows_of(right), self.rows_of(left | right))
    }

    fn cost(&mut self, order: &Order) -> (f64, Set) {
        match order {
            Order::Relation(relation) => (0.0, 1 << *relation),
            Order::Join(left, right) => {
                let (left, right) = (self.cost(left), self.cost(right));
                (left.0 + right.0 + self.join_cost(left.1, right.1), left.1 | right.1)
            }
        }
    }

    /// Two plans joined: the one with fewer rows is the left one, which is put into the hash table.
    fn joined(&mut self, (left, of_left): (&Plan, Set), (right, of_right): (&Plan, Set)) -> Plan {
        let cost = left.cost + right.cost + self.join_cost(of_left, of_right);
        let (left, right) = match self.rows_of(of_left) <= self.rows_of(of_right) {
            true => (left, right),
            false => (right, left),
        };
        Plan { cost, order: Order::join(left.order.clone(), right.order.clone()) }
    }

    /// The cheapest of all orders; `None` if some relations have no key in common with the others.
    fn best(&mut self) -> Option<Plan> {
        let count = self.region.relations.len();
        // By sets: what it costs, and one of the two sets that are joined.
        let mut best: Vec<Option<(f64, Set)>> = vec![None; 1 << count];
        let sets = 1..1_u64 << count;
        let rows: Vec<f64> = std::iter::once(0.0).chain(sets.clone().map(|set| self.rows_of(set))).collect();
        let near: Vec<Set> = (0..1 << count).map(|set| self.next_to(set)).collect();
        for relation in 0..count {
            best[1 << relation] = Some((0.0, 0));
        }
        for set in sets.filter(|set| !set.is_power_of_two()) {
            // One of the two has the lowest relation.
            let rest = set & (set - 1);
            let mut other = rest;
            while other != 0 {
                let (one, two) = ((set & !other) as usize, other as usize);
                if let (Some((one_cost, _)), Some((two_cost, _))) = (best[one], best[two])
                    && near[one] & other != 0
                {
                    let cost = one_cost + two_cost + cost_of(rows[one], rows[two], rows[set as usize]);
                    if best[set as usize].is_none_or(|(least, _)| cost < least) {
                        best[set as usize] = Some((cost, one as Set));
                    }
                }
                other = (other - 1) & rest;
            }
        }
        let all = (1 << count) - 1;
        best[all as usize]?;
        Some(self.taken(&best, all))
    }

    /// The plan that a table of the cheapest joins has for a set that has one.
    fn taken(&mut self, best: &[Option<(f64, Set)>], set: Set) -> Plan {
        match best[set as usize] {
            Some((_, part)) if part != 0 => {
                let (one, other) = (self.taken(best, part), self.taken(best, set & !part));
                self.joined((&one, part), (&other, set & !part))
            }
            _ => Plan { cost: 0.0, order: Order::Relation(set.trailing_zeros() as usize) },
        }
    }

    /// A cheap order; `None` as for [`Self::best`].
    fn greedy(&mut self) -> Option<Plan> {
        let relation = |relation| (Plan { cost: 0.0, order: Order::Relation(relation) }, 1 << relation);
        let mut plans: Vec<(Plan, Set)> = (0..self.region.relations.len()).map(relation).collect();
        while plans.len() > 1 {
            let mut least: Option<(f64, usize, usize)> = None;
            for one in 0..plans.len() {
                let near = self.next_to(plans[one].1);
                for other in one + 1..plans.len() {
                    if near & plans[other].1 != 0 {
                        let rows = self.rows_of(plans[one].1 | plans[other].1);
                        if least.is_none_or(|(known, ..)| rows < known) {
                            least = Some((rows, one, other));
                        }
                    }
                }
            }
            let (_, one, other) = least?;
            let (right, left) = (plans.swap_remove(other), plans.swap_remove(one));
            let joined = self.joined((&left.0, left.1), (&right.0, right.1));
            plans.push((joined, left.1 | right.1));
        }
        plans.pop().map(|(plan, _)| plan)
    }
}

/// The cost of a join, by the rows of its sides and its own.
fn cost_of(left: f64, right: f64, joined: f64) -> f64 {
    let (one, other) = (left.max(1.0), right.max(1.0));
    BUILT * one.min(other) + one.max(other) + joined.max(1.0)
}

/// The numbers of a set.
fn members(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (set != 0).then(|| {
            let next = set.trailing_zeros() as usize;
            set &= set - 1;
            next
        })
    })
}
