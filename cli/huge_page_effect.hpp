// What huge pages give on this machine: dependent reads of random lines, with small and with huge
// pages.
//
//   const huge_page_effect effect = measure_huge_pages();      // some 0.3 seconds
//   effect.small_ns, effect.huge_ns                            // for each read
//
// Both are the median of interleaved rounds. If the kernel gives no huge pages, they are about
// equal.
//
// Thread-safety: plain functions. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <string>

namespace elidex::cli {

struct huge_page_effect {
  std::size_t bytes = 0;  // that the reads are spread over
  double small_ns = 0;
  double huge_ns = 0;
};

huge_page_effect measure_huge_pages(std::size_t bytes = std::size_t{64} << 20);

// One sentence, as a line.
std::string to_text(const huge_page_effect& effect);

}  // namespace elidex::cli
