// The keys of one leaf, each stored as its distance from the leaf's base in a byte and some bits.
//
//   keys           base + 0x3a51f07, base + 0x11e24c8, ...   each less than base + 2^width (the
//                                                            leaf's frame)
//   fingerprints   the low bytes, hashed                     a byte each, all compared at once
//   rests          the other bits                            width - 8 bits each, without gaps
//
// Thread-safety: as the leaf's fields. A racing reader may see a base, a width and rests that do
// not belong together. It then computes some number, or a slot below Slots. The result counts only
// if the leaf's version has not changed. All functions run inside regions.
//
// Implementation notes
// A leaf's keys are neighbours in key order, so their distances are short (frame of reference:
// Goldstein, Ramakrishnan, Shaft, "Compressing relations and indexes", ICDE 1998). The low byte of
// a distance, xored with a hash of the other bits, serves as fingerprint (hash/fingerprints.hpp).
// The fingerprint costs no room, because the low byte can be computed from it and the other bits
// (quotienting: Knuth, TAOCP 3, section 6.4, exercise 13). Without the hash, all multiples of 256
// would have the same fingerprint.
//
// The frame decides how many keys fit: at most Slots, and as many as have room for their rests. A
// frame is chosen as wide as possible without the loss of a slot, with its keys in the middle, so
// that few later keys fall outside. A frame lies within the range of the key's type, unless it is
// all of that range. A frame that wrapped around the type's end would hold keys of both ends. No
// frame has room for such keys when they are encoded again.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "elidex/internal/hash/fingerprints.hpp"
#include "elidex/internal/tree/btree_node.hpp"
#include "elidex/internal/tree/field.hpp"
#include "elidex/internal/tree/vector_instructions.hpp"

// Decoding of eight packed keys at once, where the CPU can move bytes freely within a register.
namespace elidex::internal::vector_unpack {

inline constexpr unsigned lane_count = 8;
inline constexpr std::size_t window_bytes = 64;

#if defined(ELIDEX_VECTORS)

using eight_words [[gnu::vector_size(64)]] = std::uint64_t;
using eight_bytes [[gnu::vector_size(8)]] = std::uint8_t;

// Decodes `count` keys: key i is base + (rest << 8 | (print ^ the highest byte of rest *
// multiplier)). The rests have `rest_bits` bits each, begin at `first_bit` and have no gaps. Needs
// avx512_vbmi. Reads a window of 64 bytes from the first byte of every eighth rest on. Writes keys
// in groups of eight.
[[gnu::target("avx512f,avx512dq,avx512vl,avx512vbmi"), gnu::noinline]] inline void unpack(
    const std::uint64_t* rests, unsigned first_bit, unsigned rest_bits, const std::uint8_t* prints,
    unsigned count, std::uint64_t base, std::uint64_t multiplier, std::uint64_t* keys) noexcept {
  // In each window the rests begin at the same bits, because eight rests are whole bytes.
  const eight_words bits = eight_words{0, 1, 2, 3, 4, 5, 6, 7} * rest_bits + first_bit % 8;
  const eight_words bytes = (bits >> 3U) * 0x0101'0101'0101'0101u + 0x0706'0504'0302'0100u;
  const eight_words shifts = bits & 7U;
  const std::uint64_t mask = (std::uint64_t{1} << rest_bits) - 1;
  const char* window = reinterpret_cast<const char*>(rests) + first_bit / 8;
  for (unsigned i = 0; i < count; i += lane_count, window += rest_bits) {
    eight_words words;
    std::memcpy(&words, window, sizeof(words));
    words = reinterpret_cast<eight_words>(_mm512_maskz_permutexvar_epi8(
        ~std::uint64_t{0}, reinterpret_cast<__m512i>(bytes), reinterpret_cast<__m512i>(words)));
    eight_bytes print;
    std::memcpy(&print, prints + i, sizeof(print));
    const eight_words rest = (words >> shifts) & mask;
    const eight_words hash = (rest * multiplier) >> 56U;
    const eight_words key =
        base + (rest << 8U | (__builtin_convertvector(print, eight_words) ^ hash));
    std::memcpy(keys + i, &key, sizeof(key));
  }
}

#else

inline void unpack(const std::uint64_t* /*rests*/, unsigned /*first_bit*/, unsigned /*rest_bits*/,
                   const std::uint8_t* /*prints*/, unsigned /*count*/, std::uint64_t /*base*/,
                   std::uint64_t /*multiplier*/, std::uint64_t* /*keys*/) noexcept {}

#endif

}  // namespace elidex::internal::vector_unpack

namespace elidex::internal {

// The width of the frames for which a leaf is laid out. For 8-byte keys it is 48 bits, which is
// enough for a full leaf in a map of five million random keys. In a map of fewer such keys, leaves
// hold fewer keys, because each needs more bits.
template <std::integral Key>
inline constexpr unsigned planned_key_bits = 8 + (8 * sizeof(Key) - 8) * 5 / 7;

template <std::integral Key, bool Racing, unsigned Slots, std::size_t RestWords>
class packed_keys {
  using unsigned_key = std::make_unsigned_t<Key>;
  using distance = std::uint64_t;
  using prints_type = fingerprints<Racing, Slots>;
  static constexpr unsigned key_bits = 8 * sizeof(Key);
  static constexpr unsigned rest_room = RestWords * 64;

 public:
  static constexpr unsigned capacity = Slots;
  static constexpr bool are_found_by_order = false;
  // what approach() reads
  static constexpr std::size_t bytes_for_look_up = 2 * sizeof(std::uint64_t) + Slots;
  static_assert(Slots >= 2 && rest_room >= 2 * (key_bits - 8),
                "a leaf must hold two keys however far apart they are: larger leaves or smaller "
                "values, please");

  packed_keys() noexcept { set_frame({Key{}, free_rest_bits}); }

  Key key(unsigned slot) const noexcept {
    const distance rest = rest_at(slot, rest_bits());
    return key_of(rest, prints_.at(slot), base());
  }
  // Calls fn(slot, key) for the slots from `first` to `last - 1`.
  template <class Fn>
  void for_each(unsigned first, unsigned last, Fn&& fn) const noexcept {
    const unsigned bits = rest_bits();
    const Key base = this->base();
    last = std::min(last, slots_of(bits));  // a racing reader's count may belong to another frame
    if (first >= last) return;
    const private_rests rests(*this, first * bits / 64, last * bits / 64);
    if (vectors_of_this_cpu >= vector_instructions::avx512_vbmi) {
      const unpacked_keys keys(*this, rests, first, last, bits);
      for (unsigned slot = first; slot < last; ++slot) fn(slot, keys.at(slot - first));
      return;
    }
    for (unsigned slot = first; slot < last;) {
      std::uint64_t prints = prints_.word(slot / 8) >> slot % 8 * 8;
      for (const unsigned end = std::min(last, slot / 8 * 8 + 8); slot < end;
           ++slot, prints >>= 8U) {
        fn(slot,
           key_of(rests.at(slot * bits) & mask(bits), static_cast<std::uint8_t>(prints), base));
      }
    }
  }

  // The key must lie in the frame.
  void set(unsigned slot, Key key) noexcept {
    const distance d = distance_of(key);
    prints_.set(slot, print_of(d));
    set_rest(slot, rest_bits(), d >> 8U);
  }
  // Replaces all keys by key_at(0) to key_at(count - 1), which lie between `lowest` and `highest`.
  template <class KeyAt>
  void fill(unsigned count, Key lowest, Key highest, KeyAt&& key_at) noexcept {
    fill(count, frame_of(lowest, highest), key_at);
  }

  // Returns the slot of the key among the first `count` slots, or no_slot.
  unsigned find(Key wanted, unsigned count) const noexcept {
    const unsigned bits = rest_bits();
    const distance rest = distance_of(wanted) >> 8U;
    if (rest >> bits != 0) return no_slot;
    return slot_with(wanted, count, [&](unsigned slot) { return rest_at(slot, bits) == rest; });
  }
  // Returns the first slot with the key's fingerprint. Does not look at the rests, but prefetches
  // them.
  unsigned approach(Key wanted, unsigned count) const noexcept {
    const unsigned slot = slot_with(wanted, count, [](unsigned /*slot*/) { return true; });
    if (slot != no_slot) __builtin_prefetch(&rests_[word_of(slot * rest_bits())]);
    return slot;
  }

  // How many keys between these two fit.
  static unsigned room_between(Key lowest, Key highest) noexcept {
    return slots_of(frame_of(lowest, highest).rest_bits);
  }
  // Whether `more` keys from `lowest` to `highest` have room beside the first `count`.
  // make_room_for() also changes the frame for them if necessary. If they have no room, it changes
  // nothing and returns false.
  bool has_room_for(unsigned count, Key lowest, Key highest, unsigned more) const noexcept {
    frame ignored = frame_now();
    return count + more <= room_with(count, lowest, highest, more, ignored);
  }
  bool make_room_for(unsigned count, Key lowest, Key highest, unsigned more) noexcept {
    frame wanted = frame_now();
    if (count + more > room_with(count, lowest, highest, more, wanted)) return false;
    if (wanted == frame_now()) return true;
    std::array<Key, Slots> kept;
    for_each(0, count, [&](unsigned slot, Key key) { kept[slot] = key; });
    fill(count, wanted, [&](unsigned slot) { return kept[slot]; });
    return true;
  }

 private:
  struct frame {
    Key base;
    unsigned rest_bits;
    bool operator==(const frame&) const = default;
  };

  // A private copy of some of the rests' words, which can be read from any byte.
  class private_rests {
   public:
    private_rests(const packed_keys& of, unsigned first_word, unsigned last_word) noexcept {
      for (unsigned i = first_word; i <= last_word + 1 && i <= RestWords; ++i) {
        words_[i] = of.rests_[i].template load<Racing>();
      }
    }
    const std::uint64_t* words() const noexcept { return words_.data(); }
    // The bits from this one on: at least 57 of them.
    std::uint64_t at(unsigned bit) const noexcept {
      if constexpr (std::endian::native == std::endian::little) {
        std::uint64_t bytes;
        std::memcpy(&bytes, reinterpret_cast<const char*>(words_.data()) + bit / 8, sizeof(bytes));
        return bytes >> bit % 8;
      } else {
        return words_[bit / 64] >> bit % 64 | words_[bit / 64 + 1] << 1U << (63 - bit % 64);
      }
    }

   private:
    // with room for a window of vectors
    std::array<std::uint64_t, RestWords + 1 + vector_unpack::window_bytes / 8> words_;
  };

  // The keys of the slots from `first` to `last - 1`, decoded by vectors.
  class unpacked_keys {
   public:
    unpacked_keys(const packed_keys& of, const private_rests& rests, unsigned first, unsigned last,
                  unsigned bits) noexcept {
      std::array<std::uint64_t, prints_type::words + 1> prints;
      for (unsigned i = first / 8; i <= (last - 1) / 8; ++i) prints[i] = of.prints_.word(i);
      vector_unpack::unpack(rests.words(), first * bits, bits,
                            reinterpret_cast<const std::uint8_t*>(prints.data()) + first,
                            last - first, static_cast<unsigned_key>(of.base()), hash_multiplier,
                            keys_.data());
    }
    Key at(unsigned i) const noexcept {
      return static_cast<Key>(static_cast<unsigned_key>(keys_[i]));
    }

   private:
    std::array<std::uint64_t, Slots + vector_unpack::lane_count> keys_;
  };

  // The width of the rests up to which no slot is lost.
  static constexpr unsigned free_rest_bits = std::min(key_bits - 8, rest_room / Slots);

  static unsigned slots_of(unsigned rest_bits) noexcept {
    return rest_bits <= free_rest_bits ? Slots : std::min(Slots, rest_room / rest_bits);
  }
  static frame frame_of(Key lowest, Key highest) noexcept {
    const distance range = distance_between(lowest, highest);
    const auto width = std::max(static_cast<unsigned>(std::bit_width(range)), 8 + free_rest_bits);
    const distance before_lowest = distance_between(std::numeric_limits<Key>::min(), lowest);
    const distance behind_highest = distance_between(highest, std::numeric_limits<Key>::max());
    const distance spare = (~distance{0} >> (64 - width)) - range;
    const distance below_at_least = spare - std::min(spare, behind_highest);
    const distance below = std::min(std::max(spare / 2, below_at_least), before_lowest);
    return {static_cast<Key>(static_cast<unsigned_key>(lowest) - static_cast<unsigned_key>(below)),
            width - 8};
  }
  frame frame_now() const noexcept { return {base(), rest_bits()}; }

  // How many keys fit into a frame that also holds `more` keys from `lowest` to `highest`. Sets
  // `now` to that frame if another frame is necessary.
  unsigned room_with(unsigned count, Key lowest, Key highest, unsigned more,
                     frame& now) const noexcept {
    const unsigned room = slots_of(now.rest_bits);
    if (count + more <= room && lies_in_frame(lowest) && lies_in_frame(highest)) return room;
    if (count + more > Slots) return Slots;
    for_each(0, count, [&](unsigned /*slot*/, Key key) {
      lowest = std::min(lowest, key);
      highest = std::max(highest, key);
    });
    now = frame_of(lowest, highest);
    return slots_of(now.rest_bits);
  }
  bool lies_in_frame(Key key) const noexcept { return distance_of(key) >> 8U >> rest_bits() == 0; }

  distance distance_of(Key key) const noexcept { return distance_between(base(), key); }
  static distance distance_between(Key base, Key key) noexcept {
    return static_cast<unsigned_key>(static_cast<unsigned_key>(key) -
                                     static_cast<unsigned_key>(base));
  }
  static Key key_of(distance rest, std::uint8_t print, Key base) noexcept {
    const distance d = rest << 8U | (print ^ hash(rest));
    return static_cast<Key>(
        static_cast<unsigned_key>(static_cast<unsigned_key>(base) + static_cast<unsigned_key>(d)));
  }
  static constexpr std::uint64_t hash_multiplier = 0x9E37'79B9'7F4A'7C15u;  // the golden ratio's
  static std::uint8_t hash(distance rest) noexcept {
    return static_cast<std::uint8_t>((rest * hash_multiplier) >> 56U);
  }
  static std::uint8_t print_of(distance d) noexcept {
    return static_cast<std::uint8_t>(d) ^ hash(d >> 8U);
  }

  template <class IsWanted>
  unsigned slot_with(Key wanted, unsigned count, IsWanted&& is_wanted) const noexcept {
    const unsigned slot =
        prints_.find(print_of(distance_of(wanted)), std::min(count, Slots), is_wanted);
    return slot == Slots ? no_slot : slot;
  }

  // A rest may lie across two words: its low part in one, its high part in the next. The array has
  // one extra word, so that there is always a next one.
  distance rest_at(unsigned slot, unsigned bits) const noexcept {
    return rest_from(word_of(slot * bits), slot * bits % 64, bits);
  }
  distance rest_from(unsigned word, unsigned shift, unsigned bits) const noexcept {
    const std::uint64_t low = rests_[word].template load<Racing>() >> shift;
    const std::uint64_t high = rests_[word + 1].template load<Racing>() << 1U << (63 - shift);
    return (low | high) & mask(bits);
  }
  static unsigned word_of(unsigned bit) noexcept {
    // a racing reader may compute a bit beyond the end
    return std::min<unsigned>(bit / 64, RestWords - 1);
  }
  void set_rest(unsigned slot, unsigned bits, distance rest) noexcept {
    const unsigned first = slot * bits;
    const unsigned at = first / 64;
    const unsigned shift = first % 64;
    store_bits(at, mask(bits) << shift, rest << shift);
    if (shift + bits > 64) store_bits(at + 1, mask(bits) >> (64 - shift), rest >> (64 - shift));
  }
  void store_bits(unsigned word, std::uint64_t where, std::uint64_t what) noexcept {
    rests_[word].template store<Racing>((rests_[word].template load<Racing>() & ~where) | what);
  }

  // Writes whole words.
  template <class KeyAt>
  void fill(unsigned count, const frame& f, KeyAt&& key_at) noexcept {
    set_frame(f);
    std::uint64_t prints = 0;
    std::uint64_t rests = 0;
    unsigned bit = 0;
    for (unsigned slot = 0; slot < count; ++slot) {
      const distance d = distance_between(f.base, key_at(slot));
      const distance rest = d >> 8U;
      prints |= std::uint64_t{print_of(d)} << slot % 8 * 8;
      if (slot % 8 == 7) prints_.set_word(slot / 8, std::exchange(prints, 0));
      const unsigned shift = bit % 64;
      rests |= rest << shift;
      if (shift + f.rest_bits >= 64) {
        rests_[bit / 64].template store<Racing>(rests);
        rests = rest >> 1U >> (63 - shift);
      }
      bit += f.rest_bits;
    }
    if (count % 8 != 0) prints_.set_word(count / 8, prints);
    if (bit % 64 != 0) rests_[bit / 64].template store<Racing>(rests);
  }

  static std::uint64_t mask(unsigned bits) noexcept { return (std::uint64_t{1} << bits) - 1; }

  Key base() const noexcept { return base_.template load<Racing>(); }
  unsigned rest_bits() const noexcept { return rest_bits_.template load<Racing>(); }
  void set_frame(const frame& f) noexcept {
    base_.template store<Racing>(f.base);
    rest_bits_.template store<Racing>(static_cast<std::uint8_t>(f.rest_bits));
  }

  field<Key> base_;
  field<std::uint8_t> rest_bits_;
  prints_type prints_;
  std::array<field<std::uint64_t>, RestWords + 1> rests_{};
};

}  // namespace elidex::internal
