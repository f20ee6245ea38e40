#pragma once
// A request stream: what one thread does to an index in a run, made before the clock starts.
//
//   request_stream<std::uint64_t> stream;
//   stream.append(request_kind::read, 42);
//   for (request_cursor<std::uint64_t> at(stream); at.remaining() > 0;) { auto [kind, key] =
//       at.next(); ... }
//
// Invariants: the key material lies in the stream itself, in the order of use, so that a run reads
// it sequentially and a lookup's cache misses are the index's own. Values are not stored: writers
// make them from a counter.
//
// Thread-safety: a finished stream is immutable and may be read by many cursors; a cursor belongs
// to one thread.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/workload/key_set.hpp"
#include "elidex/internal/memory/memory_name.hpp"

namespace elidex::bench {

enum class request_kind : std::uint8_t {
  read,    // get of a key that is there
  look,    // get of a key that may be there
  insert,  // a key that is not there
  // this request's key and those of all behind it, which ascend, into an empty index, with one call
  insert_all,
  put,     // overwrite the value of a key that is there
  upsert,  // insert the key, or overwrite its value
  modify,  // read-modify-write of a key that is there
  erase,   // a key that is there
  scan,    // ascending from a key that is there
  // get of this request's key and of those of the requests behind it, keys_at_once() in all, with
  // one call
  read_many,
  // this request's key and those of the requests behind it, keys_at_once() in all, which are not
  // there, with one call
  insert_many,
  // paper 003's write (workload.hpp): insert the key with a record unless it is there, make a new
  // value, insert the key once more, and store the value into its record
  store,
};

/// Memory for the records and values of store requests. The stream's copies share it. Values in the
/// index are addresses of records, so no store may run on the index after the memory is freed.
/// All value_rooms compare equal, so that a comparison of streams ignores them.
class value_room {
 public:
  /// The object whose address is a key's value in the index. It has a cache line of its own (our
  /// choice), because threads that find a key write to the record of the thread that inserted it.
  struct alignas(64) record {
    std::atomic<const std::byte*> value{nullptr};
  };

  value_room() = default;
  value_room(std::size_t stores, std::size_t value_bytes)
      : records_(std::make_shared<std::vector<record>>(stores)),
        values_(std::make_shared<std::vector<std::byte>>(stores * value_bytes)) {
    internal::name_memory(records_->data(), records_->size() * sizeof(record), "record");
    internal::name_memory(values_->data(), values_->size(), "new value");
  }
  [[nodiscard]] record& nth_record(std::size_t n) const noexcept { return (*records_)[n]; }
  [[nodiscard]] std::byte* values() const noexcept { return values_->data(); }

  friend bool operator==(const value_room&, const value_room&) noexcept { return true; }

 private:
  std::shared_ptr<std::vector<record>> records_;
  std::shared_ptr<std::vector<std::byte>> values_;
};

/// The most keys of one read_many or insert_many.
inline constexpr std::size_t keys_at_once_max = 64;

template <class Key>
struct request {
  request_kind kind;
  key_arg<Key> key;
};

template <class Key>
class request_cursor;

template <class Key>
class request_stream;

template <>
class request_stream<std::uint64_t> {
 public:
  void reserve(std::size_t requests, std::size_t /*key_bytes*/ = 0) {
    kinds_.reserve(requests);
    keys_.reserve(requests);
  }
  void append(request_kind kind, std::uint64_t key) {
    kinds_.push_back(kind);
    keys_.push_back(key);
  }
  void append_scan(std::uint64_t from, std::uint32_t length) {
    append(request_kind::scan, from);
    scan_lengths_.push_back(length);
  }
  [[nodiscard]] std::size_t size() const noexcept { return kinds_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return kinds_.size() * (sizeof(request_kind) + sizeof(std::uint64_t)) +
           scan_lengths_.size() * 4;
  }
  /// Calls fn(address, bytes) for each buffer of the stream.
  template <class Fn>
  void for_each_buffer(Fn fn) const {
    fn(kinds_.data(), kinds_.size() * sizeof(request_kind));
    fn(keys_.data(), keys_.size() * sizeof(std::uint64_t));
    fn(scan_lengths_.data(), scan_lengths_.size() * sizeof(std::uint32_t));
  }
  /// Of each read_many and insert_many; the last one may have fewer.
  [[nodiscard]] std::size_t keys_at_once() const noexcept { return keys_at_once_; }
  void set_keys_at_once(std::size_t keys) noexcept { keys_at_once_ = keys; }
  /// Of each store.
  [[nodiscard]] std::size_t value_bytes() const noexcept { return value_bytes_; }
  /// Call it once all requests have been appended.
  void make_room(std::size_t value_bytes) {
    value_bytes_ = value_bytes;
    room_ = value_room(size(), value_bytes);
  }
  [[nodiscard]] const value_room& room() const noexcept { return room_; }
  friend bool operator==(const request_stream&, const request_stream&) = default;

 private:
  friend class request_cursor<std::uint64_t>;
  std::vector<request_kind> kinds_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> scan_lengths_;  // one for each scan, in order
  std::size_t keys_at_once_ = 1;
  std::size_t value_bytes_ = 0;
  value_room room_;
};

template <>
class request_stream<std::string> {
 public:
  void reserve(std::size_t requests, std::size_t key_bytes) {
    bytes_.reserve(requests * header_bytes + key_bytes);
  }
  void append(request_kind kind, std::string_view key) {
    const auto length = static_cast<std::uint32_t>(key.size());
    const std::size_t at = bytes_.size();
    bytes_.resize(at + header_bytes + key.size());
    bytes_[at] = static_cast<char>(kind);
    std::memcpy(bytes_.data() + at + 1, &length, sizeof(length));
    if (!key.empty()) std::memcpy(bytes_.data() + at + header_bytes, key.data(), key.size());
    ++requests_;
  }
  void append_scan(std::string_view from, std::uint32_t length) {
    append(request_kind::scan, from);
    scan_lengths_.push_back(length);
  }
  [[nodiscard]] std::size_t size() const noexcept { return requests_; }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.size() + scan_lengths_.size() * 4;
  }
  template <class Fn>
  void for_each_buffer(Fn fn) const {
    fn(bytes_.data(), bytes_.size());
    fn(scan_lengths_.data(), scan_lengths_.size() * sizeof(std::uint32_t));
  }
  /// Of each read_many and insert_many; the last one may have fewer.
  [[nodiscard]] std::size_t keys_at_once() const noexcept { return keys_at_once_; }
  void set_keys_at_once(std::size_t keys) noexcept { keys_at_once_ = keys; }
  friend bool operator==(const request_stream&, const request_stream&) = default;

 private:
  friend class request_cursor<std::string>;
  static constexpr std::size_t header_bytes = 1 + sizeof(std::uint32_t);  // kind, length of the key
  std::vector<char> bytes_;
  std::size_t requests_ = 0;
  std::vector<std::uint32_t> scan_lengths_;
  std::size_t keys_at_once_ = 1;
};

template <>
class request_cursor<std::uint64_t> {
 public:
  explicit request_cursor(const request_stream<std::uint64_t>& stream) : stream_(&stream) {}
  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  [[nodiscard]] std::size_t remaining() const noexcept { return stream_->size() - at_; }
  [[nodiscard]] request<std::uint64_t> next() noexcept {
    const std::size_t i = at_++;
    return {stream_->kinds_[i], stream_->keys_[i]};
  }
  /// The length of the scan that next() just gave; to be called once for each.
  [[nodiscard]] std::uint32_t scan_length() noexcept { return stream_->scan_lengths_[scans_++]; }
  [[nodiscard]] std::size_t keys_at_once() const noexcept { return stream_->keys_at_once(); }
  void rewind() noexcept { at_ = scans_ = 0; }

 private:
  const request_stream<std::uint64_t>* stream_;
  std::size_t at_ = 0;
  std::size_t scans_ = 0;
};

template <>
class request_cursor<std::string> {
 public:
  explicit request_cursor(const request_stream<std::string>& stream)
      : stream_(&stream), here_(stream.bytes_.data()) {}
  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  [[nodiscard]] std::size_t remaining() const noexcept { return stream_->size() - at_; }
  [[nodiscard]] request<std::string> next() noexcept {
    ++at_;
    const auto kind = static_cast<request_kind>(*here_);
    std::uint32_t length = 0;
    std::memcpy(&length, here_ + 1, sizeof(length));
    const std::string_view key(here_ + request_stream<std::string>::header_bytes, length);
    here_ = key.data() + length;
    return {kind, key};
  }
  [[nodiscard]] std::uint32_t scan_length() noexcept { return stream_->scan_lengths_[scans_++]; }
  [[nodiscard]] std::size_t keys_at_once() const noexcept { return stream_->keys_at_once(); }
  void rewind() noexcept {
    at_ = scans_ = 0;
    here_ = stream_->bytes_.data();
  }

 private:
  const request_stream<std::string>* stream_;
  const char* here_;
  std::size_t at_ = 0;
  std::size_t scans_ = 0;
};

}  // namespace elidex::bench
