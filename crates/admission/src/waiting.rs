//! Clients that are connected and have not said who they are.
//!
//! Who has not said so must not shut out others. When there is no place left, one of them makes room: of the address from which
//! most wait, the one that has waited for longest. Adding, removing and choosing take logarithmic time, because clients that
//! flood the server decide how often they happen.
//!
//! Not its business: how many there may be.

use crate::address::Address;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tokio_util::sync::CancellationToken;

/// The number of a client in the order of arrival.
pub type Number = u64;

/// Clients that wait, each with the token that ends its connection.
#[derive(Debug, Default)]
pub struct Waiting {
    of_address: HashMap<Address, BTreeMap<Number, CancellationToken>>,
    /// Addresses by the number of clients that wait, and of equal ones by the oldest of these.
    crowds: BTreeSet<(usize, Reverse<Number>, Address)>,
    len: usize,
}

impl Waiting {
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a client, whose number is greater than any before.
    pub fn add(&mut self, address: Address, number: Number, ended: CancellationToken) {
        let clients = self.of_address.entry(address).or_default();
        if let Some(crowd) = crowd(address, clients) {
            self.crowds.remove(&crowd);
        }
        clients.insert(number, ended);
        self.crowds.extend(crowd(address, clients));
        self.len += 1;
    }

    /// Removes a client. Returns its token if it was still there.
    pub fn remove(&mut self, address: Address, number: Number) -> Option<CancellationToken> {
        let clients = self.of_address.get_mut(&address)?;
        let before = crowd(address, clients)?;
        let ended = clients.remove(&number)?;
        self.crowds.remove(&before);
        match crowd(address, clients) {
            Some(now) => drop(self.crowds.insert(now)),
            None => drop(self.of_address.remove(&address)),
        }
        self.len -= 1;
        Some(ended)
    }

    /// Removes the client of this address that has waited for longest, for the caller to end.
    pub fn remove_oldest_of(&mut self, address: Address) -> Option<CancellationToken> {
        let (&number, _) = self.of_address.get(&address)?.first_key_value()?;
        self.remove(address, number)
    }

    /// Removes the client that makes room for another, for the caller to end.
    pub fn remove_one(&mut self) -> Option<(Address, Number, CancellationToken)> {
        let &(_, Reverse(number), address) = self.crowds.last()?;
        self.remove(address, number).map(|ended| (address, number, ended))
    }
}

fn crowd(
    address: Address,
    clients: &BTreeMap<Number, CancellationToken>,
) -> Option<(usize, Reverse<Number>, Address)> {
    let (&oldest, _) = clients.first_key_value()?;
    Some((clients.len(), Reverse(oldest), address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn address(last: u8) -> Address {
        IpAddr::from([10, 0, 0, last]).into()
    }

    #[test]
    fn the_oldest_client_of_the_busiest_address_makes_room() {
        let mut waiting = Waiting::default();
        for (number, last) in [(0, 1), (1, 2), (2, 2), (3, 2), (4, 3)] {
            waiting.add(address(last), number, CancellationToken::new());
        }
        let mut order = Vec::new();
        while let Some((of, number, ended)) = waiting.remove_one() {
            assert!(!ended.is_cancelled(), "the caller ends it");
            order.push((of, number));
            assert_eq!(waiting.len(), 5 - order.len());
        }
        let of = |last, number| (address(last), number);
        assert_eq!(order, [of(2, 1), of(2, 2), of(1, 0), of(2, 3), of(3, 4)]);
        assert!(waiting.is_empty() && waiting.of_address.is_empty() && waiting.crowds.is_empty());
    }

    #[test]
    fn a_client_that_said_who_it_is_makes_no_room() {
        let mut waiting = Waiting::default();
        (0..3).for_each(|number| waiting.add(address(1), number, CancellationToken::new()));
        assert!(waiting.remove(address(1), 0).is_some());
        assert!(waiting.remove(address(1), 0).is_none() && waiting.remove(address(2), 1).is_none());
        assert_eq!(waiting.remove_one().map(|(_, number, _)| number), Some(1));
        assert!(
            waiting.remove_oldest_of(address(2)).is_none() && waiting.remove_oldest_of(address(1)).is_some()
        );
        assert!(waiting.is_empty());
    }
}
