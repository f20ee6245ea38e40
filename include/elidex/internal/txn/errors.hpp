// What a transaction's functions throw. Each leaves the transaction as it was before the call, so
// that who catches it inside may go on; if it leaves the transaction's function, as any exception,
// all is rolled back. None is thrown because of what other transactions do at the same time.
#pragma once

#include <stdexcept>

namespace elidex::internal {

class error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// insert() of a key that is there.
class duplicate_key : public error {
  using error::error;
};

// No table of that name, or one of other keys or rows.
class unknown_table : public error {
  using error::error;
};
class schema_mismatch : public error {
  using error::error;
};

// A row that is larger than its table's.
class row_too_large : public error {
  using error::error;
};

// In a child of fork(): what would write to a log that the parent opened. The parent's logger
// thread does not exist there, and the files are the parent's. Nothing has been written, and
// nothing has been committed.
class forked_child : public error {
  using error::error;
};

}  // namespace elidex::internal
