//! scc: `TreeIndex`, a B+tree whose reads take no lock.
//!
//! Its operations make their own epoch guards. A scan holds one guard.
//!
//! An entry of the crate is immutable, and its `upsert_sync` writes a new one into the leaf. It has
//! no call that adds to a value atomically. The values here are therefore atomics, which an update
//! changes through `read_sync`, as the crate's documentation says. `read_sync` holds a shared lock
//! of the node above the leaf, so that a split does not move the value meanwhile. An update by
//! `upsert_sync` takes 1.2 times as long (by hand: 1 M keys, one thread). A read may see the value
//! in a leaf that has just been split, as it was before the split.

use scc::{Guard, TreeIndex};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::{Entry, OrderedPeer, Peer, copy};

pub struct Tree(TreeIndex<u64, AtomicU64>);

impl Peer for Tree {
    type Visit = ();

    fn create() -> Tree {
        Tree(TreeIndex::new())
    }

    fn enter(&self) {}

    #[inline]
    fn get(&self, _: &mut (), key: u64) -> Option<u64> {
        // Acquire: pairs with the Release in update().
        self.0.peek_with(&key, |_, there| there.load(Acquire))
    }

    #[inline]
    fn insert(&self, _: &mut (), key: u64, value: u64) -> bool {
        self.0.insert_sync(key, AtomicU64::new(value)).is_ok()
    }

    #[inline]
    fn update(&self, _: &mut (), key: u64, value: u64) -> bool {
        // Release: pairs with the Acquire in get() and scan().
        self.0.read_sync(&key, |_, there| there.store(value, Release)).is_some()
    }

    #[inline]
    fn add(&self, _: &mut (), key: u64, delta: u64) -> bool {
        // Release: as in update().
        self.0.read_sync(&key, |_, there| there.fetch_add(delta, Release)).is_some()
    }

    #[inline]
    fn erase(&self, _: &mut (), key: u64) -> bool {
        self.0.remove_sync(&key)
    }
}

impl OrderedPeer for Tree {
    /// A concurrent insert or erase may be in a part of the scan only.
    #[inline]
    fn scan(&self, _: &mut (), from: u64, entries: &mut [Entry]) -> usize {
        let guard = Guard::new();
        // Acquire: pairs with the Release in update().
        copy(entries, self.0.range(from.., &guard).map(|(key, there)| (*key, there.load(Acquire))))
    }
}
