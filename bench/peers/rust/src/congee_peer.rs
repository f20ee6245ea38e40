//! congee: an adaptive radix tree with optimistic lock coupling.
//!
//! Every operation takes an epoch guard. The crate's documentation says to reuse a guard, because
//! to make one is expensive, and its own benchmark uses one per thread for the whole run. Then no
//! memory is reclaimed while the benchmark runs, so a visit renews its guard after some requests.
//! The cost is too small to be measured.
//!
//! Its scan is a snapshot of one node at a time. From reading version 0.4.1, not observed: the
//! entries that a scan passes over before its first one are read without a check at their end. A
//! scan may therefore miss a key behind them while another thread inserts a smaller key into that
//! node.

use congee::Congee;
use congee::epoch::{Guard, pin};
use std::mem::{align_of, offset_of, size_of};
use std::slice;

use crate::{Entry, OrderedPeer, Peer};

// The tree's keys and values are usize.
const _: () = assert!(size_of::<usize>() == size_of::<u64>());

/// Requests between two renewals of a guard. Each request retires at most one node, and a renewal
/// frees up to 512. The number is odd, so that renewals fall on requests whose time the runner
/// takes as often as on others.
const REQUESTS_PER_GUARD: u32 = 255;

/// How often a thread that leaves asks for retired nodes to be freed. The crate frees them when a
/// tree is dropped.
const FLUSHES: u32 = 128;

pub struct Tree(Congee<usize, usize>);

/// What a thread holds while it works on the tree. It has no guard only while it is dropped.
pub struct Visit {
    guard: Option<Guard>,
    requests_left: u32,
}

impl Visit {
    #[inline]
    fn guard(&mut self) -> &Guard {
        if self.requests_left == 0 {
            self.renew();
        }
        self.requests_left -= 1;
        self.guard.as_ref().expect("a visit has a guard")
    }

    #[cold]
    fn renew(&mut self) {
        let guard = self.guard.as_mut().expect("a visit has a guard");
        guard.repin();
        guard.flush();
        self.requests_left = REQUESTS_PER_GUARD;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.guard = None;
        for _ in 0..FLUSHES {
            pin().flush();
        }
    }
}

// The tree scans into pairs, which must lie in memory as entries do.
type Pair = (usize, usize);
const _: () =
    assert!(size_of::<Pair>() == size_of::<Entry>() && align_of::<Pair>() == align_of::<Entry>());
const _: () = assert!(offset_of!(Pair, 0) == offset_of!(Entry, key));

impl Peer for Tree {
    type Visit = Visit;

    fn create() -> Tree {
        Tree(Congee::default())
    }

    fn enter(&self) -> Visit {
        Visit { guard: Some(pin()), requests_left: REQUESTS_PER_GUARD }
    }

    #[inline]
    fn get(&self, visit: &mut Visit, key: u64) -> Option<u64> {
        self.0.get(&(key as usize), visit.guard()).map(|found| found as u64)
    }

    #[inline]
    fn insert(&self, visit: &mut Visit, key: u64, value: u64) -> bool {
        let value = value as usize;
        self.0
            .compute_or_insert(key as usize, |there| there.unwrap_or(value), visit.guard())
            .expect("out of memory")
            .is_none()
    }

    #[inline]
    fn update(&self, visit: &mut Visit, key: u64, value: u64) -> bool {
        let value = value as usize;
        self.0.compute_if_present(&(key as usize), |_| Some(value), visit.guard()).is_some()
    }

    #[inline]
    fn add(&self, visit: &mut Visit, key: u64, delta: u64) -> bool {
        let sum = |there: usize| Some(there.wrapping_add(delta as usize));
        self.0.compute_if_present(&(key as usize), sum, visit.guard()).is_some()
    }

    #[inline]
    fn erase(&self, visit: &mut Visit, key: u64) -> bool {
        self.0.remove(&(key as usize), visit.guard()).is_some()
    }
}

impl OrderedPeer for Tree {
    /// Each node is read as it is at some moment; there is no snapshot of several.
    #[inline]
    fn scan(&self, visit: &mut Visit, from: u64, entries: &mut [Entry]) -> usize {
        let limit = entries.len();
        let pairs =
            unsafe { slice::from_raw_parts_mut(entries.as_mut_ptr().cast::<Pair>(), limit) };
        let guard = visit.guard();
        let found = self.0.range(&(from as usize), &usize::MAX, pairs, guard);
        if found == limit {
            return found;
        }
        // The range excludes its end, so the largest key needs a search of its own.
        match self.0.get(&usize::MAX, guard) {
            Some(value) => {
                pairs[found] = (usize::MAX, value);
                found + 1
            }
            None => found,
        }
    }
}
