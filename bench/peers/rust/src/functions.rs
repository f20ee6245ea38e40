//! The functions with C's calling convention, generated once for every peer: Rust instantiates them
//! with the peer's type, and its operations are inlined.

use std::ffi::c_void;
use std::slice;

use crate::{Entry, OrderedPeer, Peer};

/// A map and a visit of it. C++ only passes them on.
type AnyMap = c_void;
type AnyVisit = c_void;

type Change = unsafe extern "C" fn(*const AnyMap, *mut AnyVisit, u64, u64) -> bool;
type Scan = unsafe extern "C" fn(*const AnyMap, *mut AnyVisit, u64, usize, *mut Entry) -> usize;

/// `functions` in bench/peers/rust_peers.hpp.
#[repr(C)]
pub struct Functions {
    create: extern "C" fn() -> *mut AnyMap,
    destroy: unsafe extern "C" fn(*mut AnyMap),
    enter: unsafe extern "C" fn(*const AnyMap) -> *mut AnyVisit,
    leave: unsafe extern "C" fn(*mut AnyVisit),
    get: unsafe extern "C" fn(*const AnyMap, *mut AnyVisit, u64, *mut u64) -> bool,
    insert: Change,
    update: Change,
    add: Change,
    erase: unsafe extern "C" fn(*const AnyMap, *mut AnyVisit, u64) -> bool,
    scan: Option<Scan>,
}

pub const fn hash_functions<P: Peer>() -> Functions {
    Functions {
        create: create::<P>,
        destroy: destroy::<P>,
        enter: enter::<P>,
        leave: leave::<P>,
        get: get::<P>,
        insert: insert::<P>,
        update: update::<P>,
        add: add::<P>,
        erase: erase::<P>,
        scan: None,
    }
}

pub const fn ordered_functions<P: OrderedPeer>() -> Functions {
    Functions { scan: Some(scan::<P>), ..hash_functions::<P>() }
}

// Safety, of all that follow: the map is one that create() returned and destroy() has not had, the
// visit is one of this map and this thread, and the peer is the one whose table holds the function.

extern "C" fn create<P: Peer>() -> *mut AnyMap {
    Box::into_raw(Box::new(P::create())).cast()
}

/// No thread may be on a visit.
unsafe extern "C" fn destroy<P: Peer>(map: *mut AnyMap) {
    drop(unsafe { Box::from_raw(map.cast::<P>()) });
}

unsafe extern "C" fn enter<P: Peer>(map: *const AnyMap) -> *mut AnyVisit {
    Box::into_raw(Box::new(unsafe { this::<P>(map) }.enter())).cast()
}

unsafe extern "C" fn leave<P: Peer>(visit: *mut AnyVisit) {
    drop(unsafe { Box::from_raw(visit.cast::<P::Visit>()) });
}

unsafe extern "C" fn get<P: Peer>(
    map: *const AnyMap,
    visit: *mut AnyVisit,
    key: u64,
    value: *mut u64,
) -> bool {
    match unsafe { this::<P>(map).get(here::<P>(visit), key) } {
        Some(found) => {
            unsafe { value.write(found) };
            true
        }
        None => false,
    }
}

unsafe extern "C" fn insert<P: Peer>(
    map: *const AnyMap,
    visit: *mut AnyVisit,
    key: u64,
    value: u64,
) -> bool {
    unsafe { this::<P>(map).insert(here::<P>(visit), key, value) }
}

unsafe extern "C" fn update<P: Peer>(
    map: *const AnyMap,
    visit: *mut AnyVisit,
    key: u64,
    value: u64,
) -> bool {
    unsafe { this::<P>(map).update(here::<P>(visit), key, value) }
}

unsafe extern "C" fn add<P: Peer>(
    map: *const AnyMap,
    visit: *mut AnyVisit,
    key: u64,
    delta: u64,
) -> bool {
    unsafe { this::<P>(map).add(here::<P>(visit), key, delta) }
}

unsafe extern "C" fn erase<P: Peer>(map: *const AnyMap, visit: *mut AnyVisit, key: u64) -> bool {
    unsafe { this::<P>(map).erase(here::<P>(visit), key) }
}

/// `entries` has `limit` entries.
unsafe extern "C" fn scan<P: OrderedPeer>(
    map: *const AnyMap,
    visit: *mut AnyVisit,
    from: u64,
    limit: usize,
    entries: *mut Entry,
) -> usize {
    if limit == 0 {
        return 0;
    }
    let entries = unsafe { slice::from_raw_parts_mut(entries, limit) };
    unsafe { this::<P>(map).scan(here::<P>(visit), from, entries) }
}

#[inline]
unsafe fn this<'a, P: Peer>(map: *const AnyMap) -> &'a P {
    unsafe { &*map.cast::<P>() }
}

#[inline]
unsafe fn here<'a, P: Peer>(visit: *mut AnyVisit) -> &'a mut P::Visit {
    unsafe { &mut *visit.cast::<P::Visit>() }
}
