#include "elidex/internal/log/space_reserve.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "elidex/internal/log/log_writer.hpp"

namespace elidex::internal {
namespace {

bool is_full(const std::error_code& error) noexcept {
#if defined(EDQUOT)
  if (error == std::error_code(EDQUOT, std::generic_category())) return true;
#endif
  return error == std::errc::no_space_on_device;
}

}  // namespace

template <class Write>
auto space_reserve::when_full_again(std::error_code& error, const Write& write) {
  for (;;) {
    const std::uint64_t refills = refills_.load();
    if constexpr (std::is_void_v<decltype(write(error))>) {
      write(error);
      if (!error || !is_full(error) || !release(refills)) return;
    } else {
      auto result = write(error);
      if (!error || !is_full(error) || !release(refills)) return result;
    }
  }
}

class space_reserve::file final : public log_file {
 public:
  file(space_reserve& in, std::unique_ptr<log_file> of) : in_(in), of_(std::move(of)) {}

  std::size_t write_some(std::span<const std::byte> bytes, std::error_code& error) override {
    return in_.when_full_again(error,
                               [&](std::error_code& to) { return of_->write_some(bytes, to); });
  }
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> bytes,
                        std::error_code& error) override {
    return of_->read_some(offset, bytes, error);
  }
  std::uint64_t size(std::error_code& error) override { return of_->size(error); }
  void sync(std::error_code& error) override { of_->sync(error); }

 private:
  space_reserve& in_;
  const std::unique_ptr<log_file> of_;
};

space_reserve::space_reserve(std::unique_ptr<log_directory> of, std::uint64_t bytes,
                             std::function<void()> released)
    : of_(std::move(of)), bytes_(bytes), released_(std::move(released)) {
  is_there_ = is_whole();
}

bool space_reserve::is_whole() {
  std::error_code error;
  const std::unique_ptr<log_file> there = of_->open(name, error);
  return !error && there->size(error) == bytes_ && !error;
}

void space_reserve::remove_from(log_directory& in) {
  std::error_code error;
  if (in.open(name, error) != nullptr) in.remove(name, error);
}

void space_reserve::refill() {
  {
    const std::lock_guard guard(mutex_);
    if (is_there_) return;
    remove_from(*of_);  // one of another size
    std::error_code error;
    filling_ = of_->create(name, error);
    if (error) filling_.reset();
    ++refills_;
  }
  std::uint64_t written = 0;
  while (write_piece(written)) {
  }
}

// Returns whether there is more to write.
bool space_reserve::write_piece(std::uint64_t& written) {
  constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;
  std::vector<std::byte> piece(std::min(bytes_ - written, piece_bytes));
  std::uint64_t state = new_salt();
  for (std::byte& one : piece) {
    state = state * 0x5851'F42D'4C95'7F2Du + 1;
    one = static_cast<std::byte>(state >> 56U);
  }
  const std::lock_guard guard(mutex_);
  if (filling_ == nullptr) return false;  // release() has ended it
  std::error_code error;
  write_whole(*filling_, piece, error);
  written += piece.size();
  if (!error && written < bytes_) return true;
  if (!error) filling_->sync(error);
  filling_.reset();
  is_there_ = !error;
  if (error) remove_from(*of_);
  ++refills_;
  return false;
}

bool space_reserve::release(std::uint64_t refills) {
  {
    const std::lock_guard guard(mutex_);
    if (!is_there_ && filling_ == nullptr) return refills_.load() != refills;
    filling_.reset();
    std::error_code failure;
    of_->remove(name, failure);
    if (failure) return false;
    is_there_ = false;
  }
  released_();
  return true;
}

std::vector<std::string> space_reserve::names(std::error_code& error) {
  return of_->names(error);
}

std::unique_ptr<log_file> space_reserve::create(const std::string& file_name,
                                                std::error_code& error) {
  std::unique_ptr<log_file> made =
      when_full_again(error, [&](std::error_code& to) { return of_->create(file_name, to); });
  if (made == nullptr) return nullptr;
  return std::make_unique<file>(*this, std::move(made));
}

std::unique_ptr<log_file> space_reserve::open(const std::string& file_name,
                                              std::error_code& error) {
  return of_->open(file_name, error);
}

void space_reserve::rename(const std::string& from, const std::string& to, std::error_code& error) {
  when_full_again(error, [&](std::error_code& met) { of_->rename(from, to, met); });
}

void space_reserve::remove(const std::string& file_name, std::error_code& error) {
  of_->remove(file_name, error);
}

void space_reserve::sync(std::error_code& error) {
  of_->sync(error);
}

}  // namespace elidex::internal
