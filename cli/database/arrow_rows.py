"""Converts tables between the JSON lines of `elidex db` and Arrow or Parquet files.

`elidex db dump` and `elidex db load` run it.

    python3 cli/database/arrow_rows.py dump build/release/cli/elidex bank parquet accounts.parquet --table accounts
    python3 cli/database/arrow_rows.py load build/release/cli/elidex copy parquet accounts.parquet

It reads and writes the JSON lines of `elidex db`. A file that it writes has the table's description
in its metadata, so that `load` creates the same table. Another file needs --table and a column "key"
of integers or strings. Its other columns are integers, floats, booleans, strings or bytes.

Errors: one line, and status 2 for a request that cannot be met, otherwise 1."""

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "files"))
from whole_files import streamed  # noqa: E402

KEY = "key"
DESCRIPTION = b"elidex.table"
ROWS_AT_ONCE = 10_000


class BadInput(Exception):
    """The request cannot be met."""


class DumpFailed(Exception):
    """`elidex db dump` has failed, and printed the reason."""


def first_line(error):
    return (str(error).splitlines() or ["unknown reason"])[0]


def import_pyarrow():
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise BadInput(f"--format: pyarrow is missing in {sys.executable} (expected a Python with pyarrow; set "
                       "ELIDEX_PYTHON to another Python)") from None
    return pyarrow


def arrow_types(arrow):
    """The name of a column's type in elidex -> the type in Arrow."""
    names = {"real": arrow.float64(), "float32": arrow.float32(), "boolean": arrow.bool_(), "text": arrow.string(),
             "bytes": arrow.binary(), "integer": arrow.int64()}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        names[name] = getattr(arrow, name)()
    names["string"] = arrow.string()  # of keys
    return names


# --- dump ---


def schema_of(table, arrow):
    types = arrow_types(arrow)
    if not all(isinstance(column["name"], str) for column in table["columns"]):
        raise BadInput("--table: a column's name is not UTF-8 (expected UTF-8, which Arrow requires)")
    if any(column["name"] == KEY for column in table["columns"]):
        raise BadInput(f"--table: '{table['table']}' has a column 'key', and the rows' keys have that name "
                       "(expected another table)")
    fields = [arrow.field(KEY, types[table["key"]], nullable=False)]
    fields += [arrow.field(column["name"], types[column["type"]], nullable=column.get("nullable", False))
               for column in table["columns"]]
    return arrow.schema(fields, metadata={DESCRIPTION: json.dumps(table).encode()})


def value_of_json(value, kind, where):
    if value is None:
        return None
    if kind in ("text", "string"):
        if isinstance(value, dict):
            raise BadInput(f"{where}: a text that is not UTF-8 (expected UTF-8, which Arrow requires)")
        return value
    if kind == "bytes":
        return bytes.fromhex(value)
    return float(value) if kind in ("real", "float32") else value


def batches_of(lines, table, schema, arrow):
    columns = [(KEY, table["key"])] + [(column["name"], column["type"]) for column in table["columns"]]

    def batch(rows):
        arrays = []
        for (name, kind), field in zip(columns, schema):
            values = [value_of_json(row[KEY] if name == KEY else row["row"][name], kind, f"column {name}")
                      for row in rows]
            arrays.append(arrow.array(values, type=field.type))
        return arrow.record_batch(arrays, schema=schema)

    rows = []
    for line in lines:
        rows.append(json.loads(line))
        if len(rows) == ROWS_AT_ONCE:
            yield batch(rows)
            rows = []
    yield batch(rows)


def writer_for(arrow, kind, file, schema):
    if kind == "parquet":
        return arrow.parquet.ParquetWriter(file, schema)
    return arrow.ipc.new_file(file, schema)


def dump(flags, arrow):
    command = [flags.elidex, "db", "dump", "--format=jsonl"]
    if flags.table:
        command.append("--table=" + flags.table)
    command += ["--", flags.directory]
    real = os.path.realpath(flags.file)
    if os.path.isdir(real) or not os.path.isdir(os.path.dirname(real)):
        raise BadInput(f"--out: {flags.file} cannot be written (expected a file)")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as rows:
        try:
            first = rows.stdout.readline()
            if not first:
                return rows.wait() or 1  # elidex has printed the reason
            table = json.loads(first)
            schema = schema_of(table, arrow)
            with streamed(flags.file) as file:
                with writer_for(arrow, flags.format, file, schema) as writer:
                    for batch in batches_of(rows.stdout, table, schema, arrow):
                        writer.write_batch(batch)
                if rows.wait() != 0:
                    raise DumpFailed
            return 0
        except DumpFailed:
            return rows.returncode
        finally:
            rows.kill()


# --- load ---


def kind_of(field, arrow):
    """The type in elidex of a column from another program."""
    types = arrow.types
    if types.is_string(field.type) or types.is_large_string(field.type):
        return "text"
    if types.is_binary(field.type) or types.is_large_binary(field.type) or types.is_fixed_size_binary(field.type):
        return "bytes"
    names = {arrow.float64(): "real", arrow.int64(): "integer"}
    if field.type in names:
        return names[field.type]
    for name, known in arrow_types(arrow).items():
        if field.type == known:
            return name
    raise BadInput(f"FILE: column '{field.name}' has type {field.type} (expected integers, floats, booleans, "
                   "strings or bytes)")


def key_type_of(field, arrow):
    kind = kind_of(field, arrow)
    if kind == "text":
        return "string"
    if kind == "integer":
        return "int64"
    if kind in ("real", "float32", "boolean", "bytes"):
        raise BadInput(f"FILE: column 'key' has type {field.type} (expected integers or strings)")
    return kind


def kept_description(schema):
    """Returns the description that dump wrote, or None if there is none that fits the columns."""
    try:
        table = json.loads((schema.metadata or {})[DESCRIPTION])
        names = [KEY] + [column["name"] for column in table["columns"]]
        return table if sorted(names) == sorted(schema.names) else None
    except (KeyError, TypeError, ValueError):
        return None


def description_of(schema, wanted, arrow):
    """Returns the line that describes the table in a dump."""
    if len(set(schema.names)) != len(schema.names):
        raise BadInput("FILE: has two columns of one name (expected different names)")
    if KEY not in schema.names:
        raise BadInput("FILE: has no column 'key' (expected the rows' keys)")
    table = kept_description(schema)
    if table is not None:
        return table | ({"table": wanted} if wanted else {})
    if not wanted:
        raise BadInput("--table: is missing (expected the name of the rows' table)")
    columns = []
    for field in schema:
        if field.name != KEY:
            column = {"name": field.name, "type": kind_of(field, arrow)}
            columns.append(column | ({"nullable": True} if field.nullable else {}))
    return {"table": wanted, "key": key_type_of(schema.field(KEY), arrow), "columns": columns}


def json_of_value(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def reading(flags, arrow):
    """Returns the file's schema, and an iterator over its record batches."""
    if not os.path.exists(flags.file):
        raise BadInput(f"FILE: '{flags.file}' does not exist (expected a file with rows)")
    try:
        if flags.format == "parquet":
            file = arrow.parquet.ParquetFile(flags.file)
            return file.schema_arrow, file.iter_batches(batch_size=ROWS_AT_ONCE)
        file = arrow.ipc.open_file(flags.file)
        return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
    except (OSError, arrow.ArrowInvalid) as error:
        raise BadInput(f"FILE: '{flags.file}' cannot be read as {flags.format}: {first_line(error)}") from None


def values_of(batch, name):
    try:
        return batch.column(name).to_pylist()
    except UnicodeDecodeError:
        raise BadInput(f"FILE: column '{name}' has a text that is not UTF-8 (expected UTF-8, or bytes)") from None


def load(flags, arrow):
    schema, batches = reading(flags, arrow)
    table = description_of(schema, flags.table, arrow)
    names = [column["name"] for column in table["columns"]]
    command = [flags.elidex, "db", "load", "--format=jsonl", "--", flags.directory, "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, encoding="utf-8") as rows:
        try:
            print(json.dumps(table), file=rows.stdin)
            row = 0
            for batch in batches:
                columns = {name: values_of(batch, name) for name in (KEY, *names)}
                for i, key in enumerate(columns[KEY]):
                    row += 1
                    if key is None:
                        raise BadInput(f"FILE: row {row} has no key (expected a key in each row)")
                    values = {name: json_of_value(columns[name][i]) for name in names}
                    print(json.dumps({"key": key, "row": values}), file=rows.stdin)
            rows.stdin.flush()
        except BrokenPipeError:
            pass  # elidex has printed the reason
        except arrow.ArrowException as error:
            rows.kill()
            raise BadInput(f"FILE: '{flags.file}' is damaged: {first_line(error)}") from None
        except BaseException:
            rows.kill()
            raise
        try:
            rows.stdin.close()
        except BrokenPipeError:
            pass
        return rows.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("direction", choices=("dump", "load"))
    parser.add_argument("elidex")
    parser.add_argument("directory")
    parser.add_argument("format", choices=("arrow", "parquet"))
    parser.add_argument("file")
    parser.add_argument("--table", default="")
    flags = parser.parse_args()
    try:
        arrow = import_pyarrow()
        return (dump if flags.direction == "dump" else load)(flags, arrow)
    except BadInput as error:
        print(f"elidex: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"elidex: {error.filename or flags.file}: {first_line(error.strerror or error)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
