//! Parallel work on rows, and sorting of many rows.
//!
//! Callers are on a blocking thread already. A simulation does everything on its own thread.

use parking_lot::Mutex;
use std::cmp::Ordering;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread::{available_parallelism, scope};
use tributary_types::host;

/// Threads for one task; more would leave no threads for loads.
const THREADS_MAX: usize = 4;
/// Fewer rows are not worth a thread.
const ROWS_OF_THREAD: usize = 32 * 1024;
/// Fewer items are sorted in one step.
const BUCKETED_MIN: usize = 8 * 1024;
/// This number of buckets can be filled together within the processor's cache, and each bucket of a million items has about a
/// thousand.
const BUCKETS_LOG2: u32 = 10;

/// The number of threads that `rows` rows are worth.
pub(crate) fn threads_for(rows: usize) -> usize {
    if host::is_simulated() {
        return 1;
    }
    (rows / ROWS_OF_THREAD).clamp(1, threads_max())
}

/// One thread per processor, at most [`THREADS_MAX`].
pub(crate) fn threads_max() -> usize {
    // The system reads several files to determine it.
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| available_parallelism().map_or(1, usize::from).min(THREADS_MAX))
}

/// Maps each item on a thread of its own, except the last, which this thread takes. The results are in the order of the items.
pub(crate) fn side_by_side<T: Send, R: Send>(mut things: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let Some(last) = things.pop() else { return Vec::new() };
    let work = &work;
    scope(|threads| {
        let begun: Vec<_> = things.into_iter().map(|thing| threads.spawn(move || work(thing))).collect();
        let last = work(last);
        let done = begun.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        done.chain([last]).collect()
    })
}

/// Maps each item on one of `threads` threads, which take the next one whenever they are done with another: items may differ much
/// in size. The results are in the order of the items.
pub(crate) fn in_turn<T: Send, R: Send>(
    things: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(things.len());
    let things = Mutex::new(things.into_iter().enumerate());
    let next = || things.lock().next();
    let some = |()| {
        let mut done = Vec::new();
        while let Some((number, thing)) = next() {
            done.push((number, work(thing)));
        }
        done
    };
    let mut done: Vec<_> = side_by_side(vec![(); threads], some).into_iter().flatten().collect();
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, done)| done).collect()
}

/// Splits a slice into `count` consecutive parts of about the same length; none is empty.
pub(crate) fn parts<T>(all: &[T], count: usize) -> Vec<&[T]> {
    all.chunks(all.len().div_ceil(count.max(1)).max(1)).collect()
}

/// Sorts items stably. `leading` is a number for each item that never decreases in the order of `compare`.
///
/// Many items are first divided into buckets by that number, each of which fits into the processor's cache, and threads sort
/// buckets in parallel.
pub(crate) fn sorted_by<T: Copy + Send>(
    mut items: Vec<T>,
    leading: impl Fn(&T) -> u64,
    compare: impl Fn(&T, &T) -> Ordering + Sync,
) -> Vec<T> {
    if items.len() < BUCKETED_MIN || items.is_sorted_by(|left, right| compare(left, right).is_le()) {
        items.sort_by(compare);
        return items;
    }
    let (least, most) = items
        .iter()
        .map(&leading)
        .fold((u64::MAX, 0), |(least, most), number| (least.min(number), most.max(number)));
    let shift = (u64::BITS - (most - least).leading_zeros()).saturating_sub(BUCKETS_LOG2);
    let bucket_of = |item: &T| ((leading(item) - least) >> shift) as usize;
    let mut lengths = vec![0; 1 << BUCKETS_LOG2];
    items.iter().for_each(|item| lengths[bucket_of(item)] += 1);
    let mut next = lengths.clone();
    let mut end = 0;
    for begin in &mut next {
        (*begin, end) = (end, end + *begin);
    }
    let mut sorted = items.clone();
    for item in &items {
        let place = &mut next[bucket_of(item)];
        sorted[*place] = *item;
        *place += 1;
    }
    let of_share = items.len().div_ceil(threads_for(items.len()));
    drop(items);
    // Whole buckets, of about as many items for each thread.
    let (mut shares, mut rest, mut share, mut count) = (Vec::new(), &mut sorted[..], Vec::new(), 0);
    for (bucket, length) in lengths.into_iter().enumerate() {
        share.push(length);
        count += length;
        if count >= of_share || bucket + 1 == 1 << BUCKETS_LOG2 {
            let (items, others) = rest.split_at_mut(count);
            shares.push((items, std::mem::take(&mut share)));
            (rest, count) = (others, 0);
        }
    }
    side_by_side(shares, |(mut items, lengths)| {
        for length in lengths {
            let (bucket, others) = items.split_at_mut(length);
            bucket.sort_by(&compare);
            items = others;
        }
    });
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|number| {
            let mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
        })
    }

    #[test]
    fn results_are_in_the_order_of_the_things() {
        assert_eq!(side_by_side((0..9).collect(), |number| number * 2), [0, 2, 4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(side_by_side(Vec::<u8>::new(), |number| number), Vec::<u8>::new());
        let panicked = std::panic::catch_unwind(|| side_by_side(vec![1, 0], |number| 1 / number));
        assert!(panicked.is_err());
        for threads in [1, 2, 5] {
            assert_eq!(
                in_turn((0..9).collect(), threads, |number| number * 2),
                [0, 2, 4, 6, 8, 10, 12, 14, 16]
            );
            assert_eq!(in_turn(Vec::<u8>::new(), threads, |number| number), Vec::<u8>::new());
        }
        let panicked = std::panic::catch_unwind(|| in_turn(vec![0, 1, 1], 2, |number| 1 / number));
        assert!(panicked.is_err());
        assert_eq!(parts(&[1, 2, 3, 4, 5], 2), [&[1, 2, 3][..], &[4, 5]]);
        assert_eq!(parts(&[0; 0], 3), [&[0; 0]; 0]);
    }

    #[test]
    fn many_items_are_sorted_as_few_are_and_equal_ones_keep_their_order() {
        let spread = |number: u64| number;
        let few = |number: u64| number % 7;
        let skewed = |number: u64| if number.is_multiple_of(10) { number } else { u64::MAX - number % 100 };
        let same = |_| 5;
        let narrow = |number: u64| (1 << 63) + number % 1000;
        for value in [spread, few, skewed, same, narrow] {
            for count in [0, 1, 1000, BUCKETED_MIN as u64, 100_000, 300_001] {
                let items: Vec<(u64, u64)> = numbers(count).map(value).zip(0..).collect();
                let mut expected = items.clone();
                expected.sort_by_key(|(number, _)| *number);
                let sorted = sorted_by(items, |(number, _)| *number, |left, right| left.0.cmp(&right.0));
                assert_eq!(sorted, expected);
            }
        }
    }

    #[test]
    fn what_leads_need_not_decide() {
        let items: Vec<(u64, u64)> = numbers(50_000).map(|number| (number >> 60, number)).collect();
        let mut expected = items.clone();
        expected.sort_unstable();
        assert_eq!(sorted_by(items, |(number, _)| *number, Ord::cmp), expected);
    }
}
