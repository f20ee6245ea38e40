// elidex db as a user runs it: what it shows, what it refuses, and that dump and load are inverse.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "elidex/database.hpp"
#include "support/elidex_tool.hpp"

namespace {

using elidex::testing::outcome;
using testing::HasSubstr;
using testing::StartsWith;

struct order {
  std::uint64_t customer = 0;
  std::string note;
  std::optional<double> discount;
  std::vector<std::byte> seal;
};
ELIDEX_ROW(order, customer, note, discount, seal);

struct plain {
  std::int32_t a = 0;
  std::int64_t b = 0;
};

class db_command : public elidex::testing::elidex_tool {
 protected:
  db_command() {
    elidex::database db;
    auto& orders = db.create_table<std::uint64_t, order>("orders");
    auto& plains = db.create_table<std::string, plain>("plains");
    auto& small = db.create_table<std::int8_t, std::int64_t>("small keys");
    db.open(path("shop"));
    db.transact([&](auto& t) {
      t.insert(orders, 1, {7, "a \"note\", short", 0.25, {std::byte{0}, std::byte{0xFF}}});
      t.insert(orders, 2, {~std::uint64_t{0}, "", std::nullopt, {}});
      t.insert(orders, 3, {1, "\xFF is no UTF-8", -1e300, {}});
      t.insert(plains, "\xC3\xA4", {-1, 2});
      t.insert(plains, "\xC3", {3, 4});
      t.insert(small, std::int8_t{-128}, 5);
    });
    db.checkpoint();
    db.close();
  }
};

TEST_F(db_command, InfoListsTablesAndColumns) {
  const outcome got = run("db info " + path("shop"));
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.out, HasSubstr("checkpoint 1 with 9 rows, with the catalog's"));
  EXPECT_THAT(got.out, HasSubstr("customer uint64, note text, discount real null, seal bytes"));
  EXPECT_THAT(got.out, HasSubstr("row bytes(16)"));
  const auto json = nlohmann::json::parse(run("db info " + path("shop") + " --json -").out);
  ASSERT_EQ(json["tables"].size(), 3u);
  EXPECT_EQ(json["tables"][0]["table"], "orders");
  EXPECT_EQ(json["tables"][0]["rows"], 3);
  EXPECT_EQ(json["tables"][2]["key"], "int8");
}

TEST_F(db_command, DumpWritesRowsAsJson) {
  const outcome got = run("db dump " + path("shop") + " --table orders");
  EXPECT_EQ(got.status, 0) << got.err;
  std::istringstream lines(got.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_THAT(line, StartsWith(R"({"table":"orders","key":"uint64","columns":[)"));
  std::getline(lines, line);
  EXPECT_EQ(
      line,
      R"({"key":1,"row":{"customer":7,"note":"a \"note\", short","discount":0.25,"seal":"00ff"}})");
  std::getline(lines, line);
  EXPECT_EQ(
      line,
      R"({"key":2,"row":{"customer":18446744073709551615,"note":"","discount":null,"seal":""}})");
  std::getline(lines, line);
  EXPECT_THAT(line, HasSubstr(R"("note":{"hex":"ff206973206e6f205554462d38"},"discount":-1e+300)"));
}

TEST_F(db_command, DumpWritesCsv) {
  const outcome got = run("db dump " + path("shop") + " --table orders --format csv");
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.out, StartsWith("key,customer,note,discount,seal\n"
                                  "1,7,\"a \"\"note\"\", short\",0.25,00ff\n"
                                  "2,18446744073709551615,\"\",,\"\"\n"));
}

TEST_F(db_command, LoadIsTheInverseOfDump) {
  const outcome dumped = run("db dump " + path("shop"));
  file("shop.jsonl", dumped.out);
  const outcome loaded = run("db load " + path("copy") + " " + path("shop.jsonl"));
  EXPECT_EQ(loaded.status, 0) << loaded.err;
  EXPECT_THAT(loaded.out, HasSubstr("6 rows loaded"));
  EXPECT_EQ(run("db dump " + path("copy")).out, dumped.out);
  EXPECT_EQ(run("db load " + path("copy") + " " + path("shop.jsonl")).status, 0);  // overwrites
  EXPECT_EQ(run("db dump " + path("copy")).out, dumped.out);

  elidex::database db;  // the program's own types fit
  auto& orders = db.create_table<std::uint64_t, order>("orders");
  db.create_table<std::string, plain>("plains");
  db.create_table<std::int8_t, std::int64_t>("small keys");
  db.open(path("copy"), {.level = elidex::db::durability::none});
  EXPECT_EQ(db.read_only([&](auto& t) { return t.get(orders, 1); })->note, "a \"note\", short");
}

TEST_F(db_command, LoadLeavesIndexesToTheProgram) {
  const auto found_by_program = [&] {
    elidex::database db;
    auto& orders = db.create_table<std::uint64_t, order>("orders");
    db.create_table<std::string, plain>("plains");
    db.create_table<std::int8_t, std::int64_t>("small keys");
    elidex::db::indexed_table by(db, orders);
    const auto customer = by.add_index<std::uint64_t>(
        "orders by customer", [](std::uint64_t, const order& one) { return one.customer; });
    db.open(path("shop"));
    std::vector<std::uint64_t> found;
    db.read_only([&](auto& t) {
      by.find(t, customer, 7, [&](std::uint64_t key, const order&) { found.push_back(key); });
    });
    return found;
  };
  EXPECT_THAT(found_by_program(), testing::ElementsAre(1));
  std::istringstream dumped(run("db dump " + path("shop") + " --table orders").out);
  std::string head;
  std::string row;
  std::getline(dumped, head);
  std::getline(dumped, row);  // of key 1
  nlohmann::json another = nlohmann::json::parse(row);
  another["key"] = 50;
  file("orders.jsonl", head + "\n" + another.dump() + "\n");
  const outcome loaded = run("db load " + path("shop") + " " + path("orders.jsonl"));
  EXPECT_EQ(loaded.status, 0) << loaded.err;
  EXPECT_THAT(found_by_program(), testing::ElementsAre(1, 50));
}

TEST_F(db_command, LoadNamesTheLine) {
  const auto refused = [&](const std::string& text) {
    file("bad.jsonl", text);
    const outcome got = run("db load " + path("new") + " " + path("bad.jsonl"));
    EXPECT_EQ(got.status, 1);
    return got.err;
  };
  const std::string table = R"({"table":"t","key":"int8","columns":[{"name":"a","type":"int8"},)"
                            R"({"name":"b","type":"text"}]})"
                            "\n";
  EXPECT_THAT(refused("{"), HasSubstr("line 1: not JSON of a dump"));
  EXPECT_THAT(refused(R"({"key":1,"row":{}})"), HasSubstr("line 1: a row before the first table"));
  EXPECT_THAT(refused(R"({"table":"t","key":"float","columns":[{"name":"a","type":"int8"}]})"),
              HasSubstr("line 1: table t: unknown key type 'float'"));
  EXPECT_THAT(refused(R"({"table":"t","key":"int8","columns":[{"name":"a","type":"int9"}]})"),
              HasSubstr("line 1: column a: unknown \"type\""));
  EXPECT_THAT(refused(R"({"table":"t","key":"int8","layout":"","row_bytes":99999999999999})"),
              HasSubstr("line 1: a schema whose rows"));
  EXPECT_THAT(refused(table + R"({"key":1,"row":{"c":1}})"), HasSubstr("line 2: column c"));
  EXPECT_THAT(refused(table + R"({"key":1,"row":{"a":128}})"), HasSubstr("line 2: "));
  EXPECT_THAT(refused(table + R"({"key":1,"row":{"a":"x"}})"), HasSubstr("line 2: column a"));
  EXPECT_THAT(refused(table + R"({"key":1,"row":{"b":null}})"), HasSubstr("not nullable"));
  EXPECT_THAT(refused(table + R"({"key":"x","row":{}})"), HasSubstr("line 2: a key"));
  EXPECT_THAT(refused(table + R"({"key":300,"row":{}})"), HasSubstr("no key of its table"));
}

TEST_F(db_command, DumpWritesAFileThatIsWhole) {
  EXPECT_EQ(run("db dump " + path("shop") + " --out " + path("shop.jsonl")).status, 0);
  EXPECT_EQ(text_of(path("shop.jsonl")), run("db dump " + path("shop")).out);
  refused("db dump " + path("shop") + " --table orders --out " + path("no/such/file.csv"), "--out");
  refused("db dump " + path("shop") + " --table orders --format parquet", "--out: is missing");
  // A device is written, and not replaced. A link stays a link.
  EXPECT_EQ(run("db dump " + path("shop") + " --out /dev/stdout").out, text_of(path("shop.jsonl")));
  EXPECT_EQ(run("db dump " + path("shop") + " --out /dev/full").status, 1);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  std::filesystem::create_symlink(file("target", "before"), path("link"));
  EXPECT_EQ(run("db dump " + path("shop") + " --out " + path("link")).status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(text_of(path("target")), text_of(path("shop.jsonl")));
  EXPECT_EQ(run("db dump " + path("shop") + " --table plains --out " + path("shop")).status, 2);
  for (const auto& one : std::filesystem::directory_iterator(path("."))) {
    EXPECT_NE(one.path().extension(), ".tmp");
  }
}

TEST_F(db_command, CsvIsReadAsItIsWritten) {
  const std::string columns =
      " --columns 'customer uint64, note text, discount real null, seal bytes'";
  ASSERT_EQ(run("db dump " + path("shop") + " --table orders --out " + path("o.csv")).status, 0);
  const outcome loaded =
      run("db load " + path("copy") + " " + path("o.csv") + " --table orders" + columns);
  EXPECT_EQ(loaded.status, 0) << loaded.err;
  EXPECT_EQ(run("db dump " + path("copy")).out,
            run("db dump " + path("shop") + " --table orders").out);

  file("more.csv", "note,key\n\"two\nlines\",9\n\n,10\r\n");
  const outcome null = run("db load " + path("copy") + " " + path("more.csv") + " --table orders");
  EXPECT_EQ(null.status, 1);
  EXPECT_THAT(null.err, HasSubstr("line 5: note"));
  file("more.csv", "note,key\n\"two\nlines\",9\n\n\"\",10\r\n");
  EXPECT_EQ(run("db load " + path("copy") + " " + path("more.csv") + " --table orders").status, 0);
  const std::string rows = run("db dump " + path("copy") + " --format csv").out;
  EXPECT_THAT(rows, HasSubstr("9,0,\"two\nlines\",,\"\"\n10,0,\"\",,\"\"\n"));
}

TEST_F(db_command, CsvErrorsNameTheLine) {
  const auto load = [&](const std::string& text) {
    file("bad.csv", text);
    const outcome got = run("db load " + path("shop") + " " + path("bad.csv") + " --table orders");
    EXPECT_EQ(got.status, 1);
    return got.err;
  };
  EXPECT_THAT(load(""), HasSubstr("no header"));
  EXPECT_THAT(load("customer\n1\n"), HasSubstr("line 1: a header without the column 'key'"));
  EXPECT_THAT(load("key,nothing\n1,2\n"), HasSubstr("line 1: column 'nothing'"));
  EXPECT_THAT(load("key,note,note\n1,2\n"), HasSubstr("line 1: column 'note' twice"));
  EXPECT_THAT(load("key,note\n1\n"), HasSubstr("line 2: 1 cell (expected 2"));
  EXPECT_THAT(load("key,customer\n1,2\n\n2,-1\n"), HasSubstr("line 4: "));
  EXPECT_THAT(load("key,customer\n1,x\n"), HasSubstr("line 2: column customer"));
  EXPECT_THAT(load("key,customer\n,1\n"), HasSubstr("line 2: an empty cell as key"));
  EXPECT_THAT(load("key,note\n1,a\"b\n"), HasSubstr("line 2: a quote inside a cell"));
  EXPECT_THAT(load("key,note\n1,\"ab\n"), HasSubstr("line 2: a quote is not closed"));
  file("good.csv", "key,a\n1,2\n");
  refused("db load " + path("new") + " " + path("good.csv"), "--table: is missing");
  refused("db load " + path("new") + " " + path("good.csv") + " --table t",
          "--columns: is missing");
  refused("db load " + path("new") + " " + path("good.csv") + " --table t --columns 'a int9'",
          "--columns: 'a int9'");
  refused(
      "db load " + path("new") + " " + path("good.csv") + " --table t --columns 'a text' --key x",
      "--key: 'x'");
  EXPECT_FALSE(std::filesystem::exists(path("new")));
}

TEST_F(db_command, ArrowFilesHaveAllValues) {
  {
    elidex::database db;
    auto& orders = db.create_table<std::int16_t, order>("orders");
    db.open(path("texts"));
    db.transact([&](auto& t) {
      t.insert(orders, -1, {~std::uint64_t{0}, "\xC3\xA4", -0.0, {std::byte{0}, std::byte{0xFF}}});
      t.insert(orders, 2, {1, "", std::nullopt, {}});
      t.insert(orders, 3, {1, "x", std::numeric_limits<double>::infinity(), {}});
    });
    db.close();
  }
  for (const std::string format : {"arrow", "parquet"}) {
    const std::string rows = path("rows." + format);
    const outcome dumped = run("db dump " + path("texts") + " --out " + rows);
    EXPECT_EQ(dumped.status, 0) << dumped.err;
    const outcome loaded = run("db load " + path("from-" + format) + " " + rows);
    EXPECT_EQ(loaded.status, 0) << loaded.err;
    EXPECT_EQ(run("db dump " + path("from-" + format)).out, run("db dump " + path("texts")).out);
  }
  refused("db dump " + path("shop") + " --table orders --out " + path("bad.arrow"),
          "column note: a text that is not UTF-8");
  EXPECT_FALSE(std::filesystem::exists(path("bad.arrow.tmp")));
  file("no.parquet", "no Parquet file");
  refused("db load " + path("copy") + " " + path("no.parquet"), "FILE: ", "as parquet");
  file("pyarrow.py", "raise ImportError\n");
  const outcome without = run_after("PYTHONPATH=" + path("."),
                                    "db dump " + path("texts") + " --out " + path("a.arrow"));
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.err, HasSubstr("pyarrow is missing"));
}

TEST_F(db_command, ShellLooksUpAndChangesRows) {
  const auto shell = [&](const std::string& commands, const std::string& flags = "") {
    file("commands", commands);
    return run_after("", "db shell " + path("shop") + flags, "<" + path("commands"));
  };
  const outcome got = shell(
      "tables\ncount orders\nget \"small keys\" \"-128\"\nscan orders 2 1\nscan \"small "
      "keys\"\n\nquit\nbad\n");
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_EQ(got.out,
            "orders: key uint64; customer uint64, note text, discount real null, seal bytes\n"
            "plains: key string; row bytes(16)\n"
            "small keys: key int8; row bytes(8)\n"
            "3\n"
            "{\"key\":-128,\"row\":{\"row\":\"0500000000000000\"}}\n"
            "{\"key\":2,\"row\":{\"customer\":18446744073709551615,\"note\":\"\",\"discount\":null,"
            "\"seal\":\"\"}}\n"
            "{\"key\":-128,\"row\":{\"row\":\"0500000000000000\"}}\n");
  EXPECT_THAT(shell("get plains \"\\u00e4\"\n").out, StartsWith("{\"key\":\"\xC3\xA4\""));
  const auto error = [&](const std::string& command, const std::string& flags = "") {
    const outcome failed = shell(command + "\nquit\n", flags);
    EXPECT_EQ(failed.status, 1);
    return failed.err;
  };
  EXPECT_THAT(error("gt orders 1"), HasSubstr("line 1: unknown command 'gt'"));
  EXPECT_THAT(error("get order 1"), HasSubstr("Did you mean 'orders'?"));
  EXPECT_THAT(error("get orders"), HasSubstr("the command ends here (expected a key)"));
  EXPECT_THAT(error("get orders 1 2"), HasSubstr("'2' after the last argument"));
  EXPECT_THAT(error("get orders -1"), HasSubstr("a key"));
  EXPECT_THAT(error("get \"small keys\" 300"), HasSubstr("no key of its table"));
  EXPECT_THAT(error("get \"small keys"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(error("put orders 1 {}"), HasSubstr("the shell only reads"));
  EXPECT_THAT(error("put orders 1 {", " --write"), HasSubstr("a row that is not a JSON object"));
  EXPECT_THAT(error("put orders 1 {\"x\": 1}", " --write"), HasSubstr("column x"));
  EXPECT_EQ(shell("put orders 1 {\"note\": \"new\"}\nput orders 9 {}\nerase orders 2\n", " --write")
                .status,
            0);
  EXPECT_EQ(run("db dump " + path("shop") + " --table orders --format csv").out,
            "key,customer,note,discount,seal\n1,7,new,0.25,00ff\n"
            "3,1,\xFF is no UTF-8,-1e+300,\"\"\n9,0,\"\",,\"\"\n");
}

TEST_F(db_command, VerifyNamesDamage) {
  const outcome whole = run("db verify " + path("shop"));
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("no damage; 3 tables, 6 rows"));
  for (const auto& one : std::filesystem::directory_iterator(path("shop"))) {
    if (one.path().extension() != ".ckpt") continue;
    std::fstream file(one.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file.put('\x5A');
  }
  const outcome damaged = run("db verify " + path("shop"));
  EXPECT_EQ(damaged.status, 1);
  const std::string place = path("shop") + "/checkpoint-00000001.ckpt";
  EXPECT_THAT(damaged.err, HasSubstr(place + " is damaged at byte"));
  // A copy of it is not kept, and the message names the file that it was copied from.
  const outcome copied = run("db backup " + path("shop") + " " + path("copy"));
  EXPECT_EQ(copied.status, 1);
  EXPECT_EQ(copied.out, "");
  EXPECT_THAT(copied.err, HasSubstr(place + " is damaged at byte"));
  EXPECT_THAT(copied.err, HasSubstr("; the copy was removed"));
  EXPECT_TRUE(std::filesystem::is_empty(path("copy")));
  ASSERT_TRUE(std::filesystem::remove(place));
  std::filesystem::rename(path("shop") + "/redo-00000001.log", path("shop") + "/redo-00000002.log");
  EXPECT_THAT(run("db verify " + path("shop")).err,
              HasSubstr(" is missing, or a checkpoint that replaces it"));
}

TEST_F(db_command, ABackupThatFailsLeavesNoPartOfTheRows) {
  std::filesystem::path last;
  for (const auto& one : std::filesystem::directory_iterator(path("shop")))
    if (one.path().extension() == ".log") last = std::max(last, one.path());
  ASSERT_TRUE(std::filesystem::remove(last));
  std::filesystem::create_directory(last);  // opens, and cannot be read
  EXPECT_EQ(run("db backup " + path("shop") + " " + path("copy")).status, 1);
  EXPECT_EQ(run("db verify " + path("copy")).status, 2);
}

TEST_F(db_command, ReadsADirectoryThatAProgramHasOpen) {
  elidex::database db;
  db.create_table<std::uint64_t, order>("orders");
  db.create_table<std::string, plain>("plains");
  auto& small = db.create_table<std::int8_t, std::int64_t>("small keys");
  db.open(path("shop"));
  db.transact([&](auto& t) { t.insert(small, std::int8_t{77}, 78); });
  db.close();  // the directory stays locked
  const outcome dumped = run("db dump " + path("shop") + " --table \"small keys\" --format csv");
  EXPECT_EQ(dumped.status, 0) << dumped.err;
  EXPECT_THAT(dumped.out, HasSubstr("\n77,"));
  EXPECT_EQ(nlohmann::json::parse(run("db info " + path("shop") + " --json -").out)["in_use"],
            true);
  EXPECT_THAT(run("db verify " + path("shop")).out, HasSubstr("a program has the directory open"));
  EXPECT_NE(run("db backup " + path("shop") + " " + path("other")).status, 0);
}

TEST_F(db_command, BackupCopiesTheDirectory) {
  const outcome got = run("db backup " + path("shop") + " " + path("copy"));
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_EQ(run("db dump " + path("copy")).out, run("db dump " + path("shop")).out);
  EXPECT_EQ(run("db backup " + path("shop") + " " + path("copy")).status, 2);
}

TEST_F(db_command, RestoreCopiesAnEarlierState) {
  std::uint64_t first_group = 0;
  {
    elidex::database db;
    db.create_table<std::uint64_t, order>("orders");
    db.create_table<std::string, plain>("plains");
    auto& small = db.create_table<std::int8_t, std::int64_t>("small keys");
    db.open(path("shop"), {.keep_history = true});
    db.transact([&](auto& t) { t.insert(small, std::int8_t{1}, 1); });
    first_group = db.wait_durable();
    db.transact([&](auto& t) { t.erase(small, std::int8_t{1}); });
    db.checkpoint();
  }
  const std::string before = path("before");
  const outcome got =
      run("db restore " + path("shop") + " " + before + " --group " + std::to_string(first_group));
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.out, HasSubstr("the state after group "));
  EXPECT_THAT(run("db dump " + before + " --table \"small keys\" --format csv").out,
              HasSubstr("\n1,"));
  EXPECT_EQ(run("db restore " + path("shop") + " " + before + " --group 1").status, 2);
  std::filesystem::copy(path("shop"), path("cut"));
  ASSERT_TRUE(std::filesystem::remove(path("cut") + "/redo-00000001.log"));
  const outcome too_early = run("db restore " + path("cut") + " " + path("other") + " --group 0");
  EXPECT_EQ(too_early.status, 1);
  EXPECT_THAT(too_early.err,
              ::testing::EndsWith("(expected a group that `elidex db history` lists)\n"));
  const outcome listed = run("db history " + path("shop"));
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("checkpoint-00000002.ckpt"));
  const auto json = nlohmann::json::parse(run("db history " + path("shop") + " --json -").out);
  EXPECT_GE(json["files"].size(), 3U);

  // A copy is brought up to date.
  const std::string copy = path("copy");
  ASSERT_EQ(run("db backup " + path("shop") + " " + copy).status, 0);
  EXPECT_EQ(run("db backup " + path("shop") + " " + copy).status, 2);
  file("commands", "put \"small keys\" 2 {}\n");
  ASSERT_EQ(run_after("", "db shell " + path("shop") + " --write", "<" + path("commands")).status,
            0);
  EXPECT_EQ(run("db backup " + path("shop") + " " + copy + " --update").status, 0);
  EXPECT_EQ(run("db dump " + copy).out, run("db dump " + path("shop")).out);
}

TEST_F(db_command, RefusesWhatItCannotRead) {
  EXPECT_EQ(run("db info " + path("nowhere")).status, 2);
  file("a file", "");
  const outcome no_directory = run("db backup " + path("shop") + " '" + path("a file") + "'");
  EXPECT_EQ(no_directory.status, 2);
  EXPECT_THAT(no_directory.err, HasSubstr("TO: "));
  EXPECT_THAT(run("db backup " + path("shop") + " " + path("nowhere") + " --update").err,
              HasSubstr("TO: "));
  std::filesystem::create_directory(path("empty"));
  const outcome empty = run("db verify " + path("empty"));
  EXPECT_EQ(empty.status, 2);
  EXPECT_THAT(empty.err, HasSubstr("has neither a log nor a checkpoint"));
  EXPECT_EQ(run("db dump " + path("shop") + " --format xml").status, 2);
  EXPECT_EQ(run("db dump " + path("shop") + " --format csv").status, 2);
  const outcome unknown = run("db dump " + path("shop") + " --table order");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("Did you mean 'orders'?"));
  elidex::database holder;
  holder.open(path("other"));
  const outcome locked = run("db shell " + path("other") + " --write");
  EXPECT_EQ(locked.status, 1);
  EXPECT_THAT(locked.err, HasSubstr("has the directory open"));
}

}  // namespace
