"""What is public: the one list of headers and classes for public_functions.py and table.py."""

# What these declare is public, but of namespace elidex::internal only what a public header names with
# `using internal::X;`.
HEADERS = (
    "elidex/bounds.hpp",
    "elidex/column.hpp",
    "elidex/condition_variable.hpp",
    "elidex/database.hpp",
    "elidex/hash_map.hpp",
    "elidex/htm.hpp",
    "elidex/mutex.hpp",
    "elidex/ordered_map.hpp",
    "elidex/shared_mutex.hpp",
    "elidex/internal/txn/errors.hpp",
    "elidex/internal/txn/indexed_table.hpp",
    "elidex/internal/txn/ordered_key.hpp",
    "elidex/internal/txn/schema.hpp",
    "elidex/internal/txn/schema_change.hpp",
    "elidex/internal/txn/sequence.hpp",
    "elidex/internal/txn/two_phase_locking.hpp",
    "elidex/internal/sync/lock_names.hpp",
)

# Classes that users reach under a name other than their own, or under several, or that lie in
# another header.
NAMES = {
    "elidex::basic_database": "database",
    "elidex::basic_mutex": "mutex",
    "elidex::basic_recursive_mutex": "recursive_mutex",
    "elidex::basic_shared_mutex": "shared_mutex",
    "elidex::internal::map_face": ("hash_map", "ordered_map"),  # their base class
    "elidex::internal::map_range": "map_range",
    "elidex::internal::table_scans": ("transaction", "two_phase_transaction",
                                      "snapshot_transaction"),  # their base class
    "elidex::internal::transaction": "transaction",
    "elidex::internal::two_phase_transaction": "two_phase_transaction",
    "elidex::internal::snapshot_transaction": "snapshot_transaction",
    "elidex::internal::table_base": "table",
    "elidex::internal::keyed_table": "table",
    "elidex::internal::table": "table",
    "elidex::internal::schema_table": "table",
}

# The kinds of misuse for which each function of a class has a row.
KINDS = {
    "column": {"re-entrance"},
    "database": {"closed object", "re-entrance"},
    "hash_map": {"re-entrance"},
    "ordered_map": {"re-entrance"},
    "ordered_map::cursor_type": {"closed object", "other thread"},
    "snapshot_transaction": {"wrong handle", "closed object", "other thread", "re-entrance"},
    "transaction": {"wrong handle", "closed object", "other thread", "re-entrance"},
    "two_phase_transaction": {"wrong handle", "closed object", "other thread", "re-entrance"},
}

# The same for each function with a parameter of one of these template types.
KINDS_OF_PARAMETERS = {
    ("Fn", "Make", "Change", "Pred", "Progress", "Predicate", "Range"): {"re-entrance", "callback throws"},
    ("Table", "Transaction"): {"wrong handle"},
    ("Bounds",): {"bad argument"},
}

# Functions without a row, and why. A * stands for anything.
NOTHING_TO_MISUSE = {
    "Takes neither a handle nor a callback.": (
        "column::column", "database::database", "condition_variable::condition_variable", "name_of",
        "schema::is_row",
    ),
    "Calls its argument for each type of keys. It touches no database.": ("database::for_each_key_type",),
    "Values. open() finds out what they mean.": ("schema_change::*",),
    "As everywhere in C++: no other thread may still use an object that is destroyed.": ("*::~*",),
    "Compares, adds or prints values.": ("*operator*",),
    "Values of a status: they take nothing, and cannot be closed.": ("htm::status::*",),
    "For authors of locks and of transactions. Each comment says what the function requires.": (
        "htm::native::*", "htm::never::*", "htm::hle_exchange_acquire", "htm::hle_store_release", "lock_record::*",
        "lock_record_named", "record_of_unnamed_locks",
    ),
    "Values, for the functions of a map that take bounds.": ("bounds::*", "prefix_bounds::*"),
    "Made by the map's range(), never by users.": (
        "map_range::map_range", "map_range::iterator::iterator", "map_range::end",
    ),
    "Made by the database, never by users.": (
        "transaction::transaction", "two_phase_transaction::two_phase_transaction",
        "snapshot_transaction::snapshot_transaction", "snapshot_transaction::group",
        "snapshot_transaction::group_to_be_durable",
    ),
    "A table is a handle: users pass it to transactions, which call its functions.": ("table::*",),
    "The policy of a database. Users only set and read its numbers.": (
        "two_phase_locking::*",
    ),
}
