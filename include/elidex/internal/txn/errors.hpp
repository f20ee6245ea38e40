// The exceptions of a database that the caller can handle.
//
//   db.transact([&](auto& t) {
//     try { t.insert(accounts, 7, ada); } catch (const db::duplicate_key&) { ... }  // may continue
//   });
//
// Guarantees: a function of the transaction that throws one of these leaves the transaction
// unchanged. The caller may catch the error and continue. An exception that leaves the function of
// transact() rolls back. Conflicts between transactions never cause these errors: transact()
// retries them.
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

// No table has that name.
class unknown_table : public error {
  using error::error;
};

// The table exists with other key or row types.
class schema_mismatch : public error {
  using error::error;
};

// A row exceeds its table's row size.
class row_too_large : public error {
  using error::error;
};

// transact() with a deadline has passed it without a commit. The transaction is rolled back.
class timed_out : public error {
  using error::error;
};

// transact() was told to stop. The transaction is rolled back.
class canceled : public error {
  using error::error;
};

// In a child of fork(): the call would write to a log that the parent opened. The parent's logger
// thread does not exist in the child, and the files belong to the parent. Nothing has been written
// or committed.
class forked_child : public error {
  using error::error;
};

}  // namespace elidex::internal
