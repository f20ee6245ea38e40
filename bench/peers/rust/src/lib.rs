//! The driver of the two peers that are Rust crates: a few functions with C's calling convention for each,
//! declared for C++ in bench/peers/rust_peers.hpp.
//!
//! A tree may be used by any number of threads; a visit belongs to the thread that made it. No panic
//! gets to C++: Rust ends the process when one would leave an `extern "C"` function.

mod bplustree_peer;
mod congee_peer;

/// The C library's malloc, or what the program was linked with in its place: all indexes are measured with
/// the same allocator, and bytes per key are that allocator's account.
#[global_allocator]
static ALLOCATOR: std::alloc::System = std::alloc::System;

/// A key and its value, as a scan hands them out.
#[repr(C)]
pub struct Entry {
    pub key: u64,
    pub value: u64,
}
