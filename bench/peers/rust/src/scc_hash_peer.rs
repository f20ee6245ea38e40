//! scc: `HashMap`, with a lock in each bucket of 32 entries; it grows a few buckets at a time.

use ahash::RandomState;
use scc::HashMap;

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
        self.0.read_sync(&key, |_, there| *there)
    }

    #[inline]
    fn insert(&self, _: &mut (), key: u64, value: u64) -> bool {
        self.0.insert_sync(key, value).is_ok()
    }

    #[inline]
    fn update(&self, _: &mut (), key: u64, value: u64) -> bool {
        self.0.update_sync(&key, |_, there| *there = value).is_some()
    }

    #[inline]
    fn add(&self, _: &mut (), key: u64, delta: u64) -> bool {
        self.0.update_sync(&key, |_, there| *there = there.wrapping_add(delta)).is_some()
    }

    #[inline]
    fn erase(&self, _: &mut (), key: u64) -> bool {
        self.0.remove_sync(&key).is_some()
    }
}
