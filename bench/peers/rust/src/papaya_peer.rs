//! papaya: `HashMap`, a lock-free hash table of pointers to entries; it grows a few entries at a
//! time.
//!
//! Each operation pins the map, as in the crate's own benchmarks. An entry is immutable: an update
//! allocates a new one, replaces the pointer, and retires the old one.

use ahash::RandomState;
use papaya::HashMap;

use crate::Peer;

pub struct Map(HashMap<u64, u64, RandomState>);

impl Peer for Map {
    type Visit = ();

    fn create() -> Map {
        Map(HashMap::default())
    }

    fn enter(&self) {}

    #[inline]
    fn get(&self, _: &mut (), key: u64) -> Option<u64> {
        self.0.pin().get(&key).copied()
    }

    #[inline]
    fn insert(&self, _: &mut (), key: u64, value: u64) -> bool {
        self.0.pin().try_insert(key, value).is_ok()
    }

    #[inline]
    fn update(&self, _: &mut (), key: u64, value: u64) -> bool {
        self.0.pin().update(key, |_| value).is_some()
    }

    #[inline]
    fn add(&self, _: &mut (), key: u64, delta: u64) -> bool {
        self.0.pin().update(key, |there| there.wrapping_add(delta)).is_some()
    }

    #[inline]
    fn erase(&self, _: &mut (), key: u64) -> bool {
        self.0.pin().remove(&key).is_some()
    }
}
