//! concurrent-map: `ConcurrentMap`, a lock-free B+tree with nodes of 64 entries, the crate's
//! default.
//!
//! A write copies the leaf, changes the copy, and replaces the leaf by it. An update reads the
//! value first and then compares and swaps it, as the crate's own `fetch_and_update` does.
//!
//! A handle of the map belongs to one thread, so a visit clones one. The crate changes nodes in
//! place while a map has one handle only. The driver keeps a handle, so that this never happens: a
//! map that threads share has several.

use concurrent_map::ConcurrentMap;
use std::sync::{Mutex, PoisonError};

use crate::{Entry, OrderedPeer, Peer, copy};

type Handle = ConcurrentMap<u64, u64>;

pub struct Tree(Mutex<Handle>);

/// Returns false, and changes nothing, if the key is absent.
#[inline]
fn change(map: &Handle, key: u64, update: impl Fn(u64) -> u64) -> bool {
    map.fetch_and_update(key, |there| there.map(|value| update(*value))).is_some()
}

impl Peer for Tree {
    type Visit = Handle;

    fn create() -> Tree {
        Tree(Mutex::new(Handle::new()))
    }

    fn enter(&self) -> Handle {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[inline]
    fn get(&self, map: &mut Handle, key: u64) -> Option<u64> {
        map.get(&key)
    }

    #[inline]
    fn insert(&self, map: &mut Handle, key: u64, value: u64) -> bool {
        map.cas(key, None::<&u64>, Some(value)).is_ok()
    }

    #[inline]
    fn update(&self, map: &mut Handle, key: u64, value: u64) -> bool {
        change(map, key, |_| value)
    }

    #[inline]
    fn add(&self, map: &mut Handle, key: u64, delta: u64) -> bool {
        change(map, key, |there| there.wrapping_add(delta))
    }

    #[inline]
    fn erase(&self, map: &mut Handle, key: u64) -> bool {
        map.remove(&key).is_some()
    }
}

impl OrderedPeer for Tree {
    /// Each leaf is a snapshot; several are none. The crate also searches the last leaf of the
    /// range, which no scan here reaches.
    #[inline]
    fn scan(&self, map: &mut Handle, from: u64, entries: &mut [Entry]) -> usize {
        copy(entries, map.range(from..))
    }
}
