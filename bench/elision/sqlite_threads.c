// sqlite_threads FILE THREADS SECONDS: threads with a connection shared by all insert rows and read them back, for so long.
// Prints how many transactions a second; exits with 1 where the rows at the end are not those that were inserted.
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static sqlite3* database;
static atomic_long inserted, failed, calls;
static double end;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void* work(void* number) {
  sqlite3_stmt *insert, *select;
  if (sqlite3_prepare_v2(database, "INSERT INTO t(owner, value) VALUES(?, ?)", -1, &insert, NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(database, "SELECT value FROM t WHERE id = ?", -1, &select, NULL) != SQLITE_OK) {
    ++failed;
    return NULL;
  }
  for (long i = 0; now() < end; ++i) {
    if (i % 4 == 0) {
      sqlite3_bind_int64(insert, 1, (long)number);
      sqlite3_bind_int64(insert, 2, i);
      if (sqlite3_step(insert) == SQLITE_DONE) ++inserted; else ++failed;
      sqlite3_reset(insert);
    } else {
      sqlite3_bind_int64(select, 1, 1 + i % (1 + atomic_load(&inserted)));
      const int answer = sqlite3_step(select);
      if (answer != SQLITE_ROW && answer != SQLITE_DONE) ++failed;
      sqlite3_reset(select);
    }
    ++calls;
  }
  sqlite3_finalize(insert);
  sqlite3_finalize(select);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const long threads = atol(argv[2]);
  const double seconds = atof(argv[3]);
  if (threads < 1 || threads > 64 ||
      sqlite3_open_v2(argv[1], &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL) !=
          SQLITE_OK ||
      sqlite3_exec(database, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; DROP TABLE IF EXISTS t;"
                   "CREATE TABLE t(id INTEGER PRIMARY KEY, owner INTEGER, value INTEGER)", NULL, NULL, NULL) != SQLITE_OK) {
    return 2;
  }
  pthread_t all[64];
  end = now() + seconds;
  for (long i = 0; i < threads; ++i) pthread_create(&all[i], NULL, work, (void*)i);
  for (long i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  sqlite3_stmt* count;
  sqlite3_prepare_v2(database, "SELECT count(*) FROM t", -1, &count, NULL);
  const long rows = sqlite3_step(count) == SQLITE_ROW ? (long)sqlite3_column_int64(count, 0) : -1;
  sqlite3_finalize(count);
  sqlite3_close(database);
  printf("%.0f\n", (double)atomic_load(&calls) / seconds);
  return rows == atomic_load(&inserted) && atomic_load(&failed) == 0 ? 0 : 1;
}
