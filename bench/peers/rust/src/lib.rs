//! The driver of the peers that are Rust crates. Each crate implements `Peer`, in a file of its
//! own. C++ reaches it through a table of functions, declared in bench/peers/rust_peers.hpp.
//!
//! Any number of threads may use a map. A visit belongs to the thread that made it. No panic
//! reaches C++: Rust ends the process when a panic would leave an `extern "C"` function.

mod bplustree_peer;
mod concurrent_map_peer;
mod congee_peer;
mod dashmap_peer;
mod functions;
mod papaya_peer;
mod scc_hash_peer;
mod scc_tree_peer;
mod skiplist_peer;

use functions::{Functions, hash_functions, ordered_functions};

/// The C library's malloc, or the allocator that the program links in its place. All indexes are
/// measured with the same allocator, and bytes per key are that allocator's account.
#[global_allocator]
static ALLOCATOR: std::alloc::System = std::alloc::System;

/// A key and its value, as a scan returns them.
#[repr(C)]
pub struct Entry {
    pub key: u64,
    pub value: u64,
}

/// A map with integer keys and values. Every operation is linearizable, except where the peer's
/// file says otherwise.
pub trait Peer: Sized {
    /// What a thread holds while it works on the map.
    type Visit;

    fn create() -> Self;
    fn enter(&self) -> Self::Visit;
    fn get(&self, visit: &mut Self::Visit, key: u64) -> Option<u64>;
    /// Returns false, and changes nothing, if the key is present.
    fn insert(&self, visit: &mut Self::Visit, key: u64, value: u64) -> bool;
    /// Returns false, and changes nothing, if the key is absent.
    fn update(&self, visit: &mut Self::Visit, key: u64, value: u64) -> bool;
    /// Adds to the value, modulo 2^64. Returns false if the key is absent.
    fn add(&self, visit: &mut Self::Visit, key: u64, delta: u64) -> bool;
    fn erase(&self, visit: &mut Self::Visit, key: u64) -> bool;
}

pub trait OrderedPeer: Peer {
    /// Copies the first entries from this key on, in the order of their keys, until `entries` is
    /// full. Returns their number.
    fn scan(&self, visit: &mut Self::Visit, from: u64, entries: &mut [Entry]) -> usize;
}

/// Fills `entries` from the iterator, which is advanced at most that often.
#[inline]
fn copy(entries: &mut [Entry], found: impl Iterator<Item = (u64, u64)>) -> usize {
    let mut count = 0;
    for (entry, (key, value)) in entries.iter_mut().zip(found) {
        *entry = Entry { key, value };
        count += 1;
    }
    count
}

#[unsafe(export_name = "elidex_bplustree")]
static BPLUSTREE: Functions = ordered_functions::<bplustree_peer::Tree>();
#[unsafe(export_name = "elidex_concurrent_map")]
static CONCURRENT_MAP: Functions = ordered_functions::<concurrent_map_peer::Tree>();
#[unsafe(export_name = "elidex_congee")]
static CONGEE: Functions = ordered_functions::<congee_peer::Tree>();
#[unsafe(export_name = "elidex_crossbeam_skiplist")]
static CROSSBEAM_SKIPLIST: Functions = ordered_functions::<skiplist_peer::Map>();
#[unsafe(export_name = "elidex_dashmap")]
static DASHMAP: Functions = hash_functions::<dashmap_peer::Map>();
#[unsafe(export_name = "elidex_papaya")]
static PAPAYA: Functions = hash_functions::<papaya_peer::Map>();
#[unsafe(export_name = "elidex_scc_hash")]
static SCC_HASH: Functions = hash_functions::<scc_hash_peer::Map>();
#[unsafe(export_name = "elidex_scc_tree")]
static SCC_TREE: Functions = ordered_functions::<scc_tree_peer::Tree>();
