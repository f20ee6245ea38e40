//! dashmap: `DashMap`, hash tables behind reader-writer locks, four tables for each CPU.

use ahash::RandomState;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::Peer;

pub struct Map(DashMap<u64, u64, RandomState>);

impl Peer for Map {
    type Visit = ();

    fn create() -> Map {
        Map(DashMap::default())
    }

    fn enter(&self) {}

    #[inline]
    fn get(&self, _: &mut (), key: u64) -> Option<u64> {
        self.0.get(&key).map(|there| *there)
    }

    #[inline]
    fn insert(&self, _: &mut (), key: u64, value: u64) -> bool {
        match self.0.entry(key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(room) => {
                room.insert(value);
                true
            }
        }
    }

    #[inline]
    fn update(&self, _: &mut (), key: u64, value: u64) -> bool {
        self.0.get_mut(&key).map(|mut there| *there = value).is_some()
    }

    #[inline]
    fn add(&self, _: &mut (), key: u64, delta: u64) -> bool {
        self.0.get_mut(&key).map(|mut there| *there = there.wrapping_add(delta)).is_some()
    }

    #[inline]
    fn erase(&self, _: &mut (), key: u64) -> bool {
        self.0.remove(&key).is_some()
    }
}
