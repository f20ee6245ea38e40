// What the functions of a transaction throw.
//
//   store.transact([&](auto& t) {
//     try { t.insert(accounts, 7, ada); } catch (const db::duplicate_key&) { ... }  // may continue
//   });
//
// Guarantees: each of these errors leaves the transaction as it was before the call. A function
// that catches the error may continue. An error that leaves the transaction's function rolls
// everything back, as any exception does. None of them is caused by what other transactions do at
// the same time.
#pragma once

#include <stdexcept>

namespace elidex::internal {

class error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// insert() of a key that is present.
class duplicate_key : public error {
  using error::error;
};

// No table has that name, or the table has other keys or rows.
class unknown_table : public error {
  using error::error;
};
class schema_mismatch : public error {
  using error::error;
};

// A row exceeds its table's row size.
class row_too_large : public error {
  using error::error;
};

// In a child of fork(): the call would write to a log that the parent opened. The parent's logger
// thread does not exist in the child, and the files belong to the parent. Nothing has been written
// or committed.
class forked_child : public error {
  using error::error;
};

}  // namespace elidex::internal
