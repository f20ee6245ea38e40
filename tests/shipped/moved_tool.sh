#!/bin/sh
# The installed program, moved to another directory, finds its scripts, data and helpers beside itself.
#   moved_tool.sh PREFIX MOVED PYTHON
set -eu
prefix=$1 moved=$2 python=$3
rm -rf "$moved"
cp -R "$prefix" "$moved"
mkdir "$moved/work"
cd "$moved/work"
export ELIDEX_PYTHON="$python"
elidex=$moved/bin/elidex
"$elidex" --version
"$elidex" list | grep -q icelake-sp-2x32
"$elidex" sim --index btree/htm-dbx --cores 2 --ops 1k --keys 1k --json sim.json
"$elidex" repro S-3.8 --json repro.json
grep -q '"commit": "elidex [0-9]' sim.json repro.json
"$elidex" report sim.json --out report.html
test -s report.html
cat > own.cpp <<'END'
#include <mutex>
#include <thread>
std::mutex mutex;
int count = 0;
void work() {
  for (int i = 0; i < 100; ++i) {
    std::lock_guard guard(mutex);
    ++count;
  }
}
int main() {
  std::thread other(work);
  work();
  other.join();
  return count == 200 ? 0 : 1;
}
END
"$moved/bin/elidex-c++" -O2 own.cpp -o own
ELIDEX_SIM="machine=icelake-sp-2x32 locks=elided report=own.json" ./own
grep -q '"committed": [1-9]' own.json
