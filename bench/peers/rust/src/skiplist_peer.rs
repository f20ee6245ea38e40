//! crossbeam-skiplist: `SkipMap`, a lock-free skip list.
//!
//! Its operations make their own epoch guards. The entries that they return have a reference count,
//! which each read, and each step of a scan, changes twice.
//!
//! The crate cannot change a value in place. Its `insert` removes the entry and links a new node,
//! so a concurrent reader may miss the key. No call adds to a value atomically. The values here are
//! therefore atomics, which an update changes in the node. An update by `insert` takes 1.2 times as
//! long (by hand: 1 M keys, one thread).
//!
//! Deviation: of two concurrent calls of `remove` for one key, both may return that they removed
//! it.

use crossbeam_skiplist::SkipMap;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::{Entry, OrderedPeer, Peer, copy};

pub struct Map(SkipMap<u64, AtomicU64>);

impl Peer for Map {
    type Visit = ();

    fn create() -> Map {
        Map(SkipMap::new())
    }

    fn enter(&self) {}

    #[inline]
    fn get(&self, _: &mut (), key: u64) -> Option<u64> {
        // Acquire: pairs with the Release in update().
        self.0.get(&key).map(|entry| entry.value().load(Acquire))
    }

    #[inline]
    fn insert(&self, _: &mut (), key: u64, value: u64) -> bool {
        // The crate returns an entry, without whether it is new. The last entry that it found stays
        // allocated until the call returns, so a new one has another address.
        let found = Cell::new(ptr::null());
        let entry = self.0.compare_insert(key, AtomicU64::new(value), |there| {
            found.set(ptr::from_ref(there));
            false
        });
        !ptr::eq(entry.value(), found.get())
    }

    #[inline]
    fn update(&self, _: &mut (), key: u64, value: u64) -> bool {
        // Release: pairs with the Acquire in get() and scan().
        self.0.get(&key).map(|entry| entry.value().store(value, Release)).is_some()
    }

    #[inline]
    fn add(&self, _: &mut (), key: u64, delta: u64) -> bool {
        // Release: as in update().
        self.0.get(&key).map(|entry| entry.value().fetch_add(delta, Release)).is_some()
    }

    #[inline]
    fn erase(&self, _: &mut (), key: u64) -> bool {
        self.0.remove(&key).is_some()
    }
}

impl OrderedPeer for Map {
    /// A concurrent insert or erase may be in a part of the scan only.
    #[inline]
    fn scan(&self, _: &mut (), from: u64, entries: &mut [Entry]) -> usize {
        // Acquire: pairs with the Release in update().
        let found = self.0.range(from..).map(|entry| (*entry.key(), entry.value().load(Acquire)));
        copy(entries, found)
    }
}
