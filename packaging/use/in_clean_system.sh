#!/bin/sh
# Runs inside a minimal Debian that has elidex's packages in /packages, and this directory in /use.
# Installs the packages, uses each of them, and removes them. `ok NAME` for each check.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
apt() {
  apt-get -q -y --no-install-recommends "$@" > /apt.log 2>&1 || { tail -20 /apt.log; exit 1; }
}
ok() { echo "ok $1"; }
has() { grep -q "$2" "$1" || { echo "$1 does not have '$2':"; cat "$1"; exit 1; }; }

apt update
apt install /packages/*.deb
ok install
apt install g++ cmake make pkg-config
mkdir /work && cd /work && cp /use/* .
fresh() { rm -rf kept && mkdir kept; }

# pkg-config gives flags, which are separate words.
# shellcheck disable=SC2046
g++ -std=c++20 -O1 store.cpp -o store $(pkg-config --cflags --libs elidex)
ldd store > linked && has linked '/usr/lib/.*libelidex.so\|/lib/.*libelidex.so'
fresh && ./store kept > said && has said 'all results are right'
ok pkg-config-shared
# shellcheck disable=SC2046
g++ -std=c++20 -O1 -static store.cpp -o store_static $(pkg-config --cflags --libs --static elidex)
fresh && ./store_static kept > said && has said 'all results are right'
ok pkg-config-static
cmake -S . -B built -DCMAKE_BUILD_TYPE=Release > /cmake.log
cmake --build built >> /cmake.log
for form in elidex shared; do
  fresh && ./built/store_$form kept > said && has said 'all results are right'
  ok "cmake-$form"
done

g++ -std=c++20 -O1 locks.cpp -o locks
preload=$(echo /usr/lib/*/elidex/libelidex-preload.so)
ELIDEX_STATS=- LD_PRELOAD=$preload ./locks > said 2> table
has said '^2000$' && has table '2000 lock calls'
ok preload

if command -v elidex > /dev/null; then
  elidex --version > said && has said "elidex $(cat /packages/version)"
  elidex list > said && has said icelake-sp-2x32
  elidex bench --index ordered_map --workload c --keys 10K --threads 1 --seconds 0.05 --repeat 1 \
    --json bench.json > /dev/null
  has bench.json '"index": "ordered_map"'
  elidex sim --index btree/htm-dbx --cores 2 --ops 1k --keys 1k --json sim.json > /dev/null
  has sim.json '"commit": "elidex [0-9]'
  apt install python3-matplotlib python3-pandas  # as the package recommends
  elidex repro S-3.8 --json repro.json > said
  has repro.json '"claims"'
  elidex elide --stats - -- ./locks 2> table > said && has table '2000 lock calls'
  elidex-c++ -O2 locks.cpp -o locks_simulated
  ELIDEX_SIM='machine=icelake-sp-2x32 locks=elided report=run.json' ./locks_simulated > /dev/null
  has run.json '"committed": [1-9]'
  man_pages=$(dpkg -L elidex-tools | grep -c '/man1/')
  test "$man_pages" = 2
  ok tools
fi

apt purge $(dpkg-query -W -f '${Package} ' '*elidex*')
test ! -e /usr/include/elidex && test ! -e /usr/share/elidex
ok purge
