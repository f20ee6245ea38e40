// A program that loads plug-ins which contain the library, or are linked with it, and knows nothing
// of it otherwise.
//
//   host run PLUGIN DIRECTORY      the smoke test, then unloading
//   host outlive PLUGIN            threads that have used the plug-in end after it was unloaded
//   host outlive-crashes PLUGIN    the same, expected to crash: a canary
//   host again PLUGIN LOADS        loads and unloads; nothing may be left behind
//   host leave PLUGIN              ends while threads use the plug-in
//   host apart PLUGIN PLUGIN       two with a copy of the library each, used by the same thread:
//                                  neither may harm the other
//   host shared PLUGIN PLUGIN      two that are linked with one shared library: whatever the one
//                                  does counts in the other
//
// Ends with status 0 and silence, or with status 1 and what was wrong.
#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "smoke.hpp"
#include "state.hpp"

namespace {

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

class plug_in {
 public:
  explicit plug_in(const std::string& path)
      : object_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    expect(object_ != nullptr,
           std::string("it cannot be loaded: ") + (object_ == nullptr ? ::dlerror() : ""));
  }
  ~plug_in() {
    if (object_ != nullptr) ::dlclose(object_);
  }
  plug_in(const plug_in&) = delete;
  plug_in& operator=(const plug_in&) = delete;

  void unload() {
    expect(::dlclose(std::exchange(object_, nullptr)) == 0, "it cannot be unloaded");
  }
  template <class Function>
  Function* function(const char* name) const {
    void* const found = ::dlsym(object_, name);
    expect(found != nullptr, std::string("it has no ") + name);
    return reinterpret_cast<Function*>(found);
  }

 private:
  void* object_;
};

bool is_mapped(const std::string& path) {
  const std::string name = std::filesystem::canonical(path).string();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(name)) return true;
  }
  return false;
}

// A thread that does what it is told until it is ended.
class worker {
 public:
  worker() = default;
  ~worker() { tasks_.set_value({}); }
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  void run(const std::function<void()>& work) {
    std::packaged_task<void()> task(work);
    std::future<void> done = task.get_future();
    tasks_.set_value(std::move(task));
    done.get();
  }

 private:
  void loop() {
    for (;;) {
      std::packaged_task<void()> task = tasks_.get_future().get();
      if (!task.valid()) return;
      tasks_ = {};
      task();
    }
  }
  std::promise<std::packaged_task<void()>> tasks_;
  std::jthread thread_{[this] { loop(); }};
};

// --- One plug-in ---

void run(const std::string& path, const std::string& directory) {
  plug_in loaded(path);
  expect(loaded.function<decltype(smoke)>("smoke")(directory.c_str()) == 0,
         "the smoke test failed");
  loaded.unload();
}

void outlive(const std::string& path) {
  plug_in loaded(path);
  worker first;
  worker second;
  for (worker* one : {&first, &second}) {
    one->run(
        [&] { expect(loaded.function<decltype(smoke_touch)>("smoke_touch")() == 0, "wrong"); });
  }
  loaded.unload();
}

void outlive_crashes(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    outlive(path);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "it did not crash");
}

struct held {
  std::size_t keys = 0;
  std::size_t heap_bytes = 0;
  std::size_t mappings = 0;
  std::size_t threads = 0;
};

held held_now() {
  held all;
  std::vector<pthread_key_t> free_keys;
  for (pthread_key_t key = 0; ::pthread_key_create(&key, nullptr) == 0;) free_keys.push_back(key);
  for (const pthread_key_t key : free_keys) ::pthread_key_delete(key);
  all.keys = PTHREAD_KEYS_MAX - free_keys.size();
  all.heap_bytes = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++all.mappings;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    ++all.threads;
  return all;
}

void again(const std::string& path, int loads) {
  worker other;
  held before;
  const auto load_once = [&] {
    plug_in loaded(path);
    const auto touch = loaded.function<decltype(smoke_touch)>("smoke_touch");
    expect(touch() == 0, "wrong on the main thread");
    other.run([&] { expect(touch() == 0, "wrong on another thread"); });
    loaded.unload();
  };
  for (int n = 0; n < loads; ++n) {
    if (n == loads / 10) before = held_now();
    load_once();
    if (n == 0) expect(!is_mapped(path), "it is still mapped");
  }
  const held after = held_now();
  const auto grown = [](const char* what, std::size_t from, std::size_t to, std::size_t allowed) {
    expect(to <= from + allowed,
           std::string(what) + ": " + std::to_string(from) + ", later " + std::to_string(to));
  };
  grown("thread keys", before.keys, after.keys, 0);
  grown("threads", before.threads, after.threads, 0);
  grown("mappings", before.mappings, after.mappings, 16);
  // Less than the smallest block for each load: what the C library keeps once may come late.
  grown("heap", before.heap_bytes, after.heap_bytes, static_cast<std::size_t>(loads) * 8);
}

void leave(const std::string& path) {
  const plug_in& loaded = *new plug_in(path);  // never unloaded
  loaded.function<decltype(smoke_leave_threads_running)>("smoke_leave_threads_running")();
}

// --- Two plug-ins ---

struct part {
  explicit part(const std::string& path) : object(path) {}
  plug_in object;
  decltype(&state_slot) slot = object.function<decltype(state_slot)>("state_slot");
  decltype(&state_pin) pin = object.function<decltype(state_pin)>("state_pin");
  decltype(&state_unpin) unpin = object.function<decltype(state_unpin)>("state_unpin");
  decltype(&state_epochs_move) epochs_move =
      object.function<decltype(state_epochs_move)>("state_epochs_move");
  decltype(&state_new_lock) new_lock = object.function<decltype(state_new_lock)>("state_new_lock");
  decltype(&state_lock) lock = object.function<decltype(state_lock)>("state_lock");
  decltype(&state_unlock) unlock = object.function<decltype(state_unlock)>("state_unlock");
  decltype(&state_new_map) new_map = object.function<decltype(state_new_map)>("state_new_map");
  decltype(&state_put) put = object.function<decltype(state_put)>("state_put");
  decltype(&state_get) get = object.function<decltype(state_get)>("state_get");
};

// Whether pins that `pinned` has on another thread hold back the epochs of `other`.
bool holds_back(worker& thread, const part& pinned, const part& other) {
  void* pin = nullptr;
  thread.run([&] { pin = pinned.pin(); });
  const bool moved = other.epochs_move();
  thread.run([&] { pinned.unpin(pin); });
  expect(other.epochs_move(), "epochs do not move when nobody is pinned");
  return !moved;
}

void apart(const std::string& path, const std::string& other_path) {
  const part a(path);
  const part b(other_path);
  worker first;
  worker second;
  // One after the other in the opposite order, so that each copy has met the threads in its own.
  first.run([&] { a.slot(); });
  second.run([&] { b.slot(); });
  std::uint32_t slots_in_b[2]{};
  first.run([&] { slots_in_b[0] = b.slot(); });
  second.run([&] { slots_in_b[1] = b.slot(); });
  expect(slots_in_b[0] != slots_in_b[1], "two live threads have the same slot");
  expect(holds_back(first, b, b) && holds_back(second, a, a),
         "a pin does not hold its own copy's epochs");
}

void shared(const std::string& path, const std::string& other_path) {
  const part a(path);
  const part b(other_path);
  worker thread;
  const std::uint32_t slot = a.slot();
  for (int n = 0; n < 100; ++n)
    expect(a.slot() == slot && b.slot() == slot, "a thread has several slots");
  expect(holds_back(thread, a, b) && holds_back(thread, b, a),
         "a pin of the one does not hold the other's epochs");

  void* const lock = a.new_lock();
  a.lock(lock);
  ::alarm(60);  // a thread that waits for itself
  b.lock(lock);
  ::alarm(0);
  b.unlock(lock);
  b.unlock(lock);

  // A thread remembers the leaf of a map to which it came several times, by the map's number.
  void* const maps[] = {a.new_map(), b.new_map()};
  for (std::uint32_t key = 0; key < 1000; ++key) {
    a.put(maps[0], key, key + 1);
    a.put(maps[1], key, key + 2);
  }
  for (const std::uint32_t which : {0U, 1U, 0U}) {
    for (int n = 0; n < 4; ++n) {
      expect(b.get(maps[which], 999) == 1000 + which, "a map has another map's value");
    }
  }
}

bool run_mode(const std::vector<std::string>& arguments) {
  const auto is = [&](const char* mode, std::size_t count) {
    return arguments.size() == count + 1 && arguments[0] == mode;
  };
  if (is("run", 2)) {
    run(arguments[1], arguments[2]);
  } else if (is("outlive", 1)) {
    outlive(arguments[1]);
  } else if (is("outlive-crashes", 1)) {
    outlive_crashes(arguments[1]);
  } else if (is("again", 2)) {
    again(arguments[1], std::stoi(arguments[2]));
  } else if (is("leave", 1)) {
    leave(arguments[1]);
  } else if (is("apart", 2)) {
    apart(arguments[1], arguments[2]);
  } else if (is("shared", 2)) {
    shared(arguments[1], arguments[2]);
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (run_mode({arguments + 1, arguments + count})) return 0;
    std::fputs("host: the first lines of host.cpp say what it takes\n", stderr);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "host: %s\n", error.what());
    return 1;
  }
}
