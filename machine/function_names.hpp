// The names of the running program's functions, for reports. They come from the symbol table of its
// file, which also has the functions that the program does not export.
//
//   const function_names names = function_names::of_this_program();
//   names.at(spot.code)                  // "transfer(int, int)"
//
// Thread-safety: const members, from any thread. Complexity: at() is logarithmic.
// Errors: of_this_program() throws nothing for a file without symbols. at() then returns addresses.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace elidex::sim {

class function_names {
 public:
  // The program must be linked at fixed addresses.
  static function_names of_this_program();

  // Returns the demangled name of the function that made a call with this return address, as the
  // source has it. If no function is known there, it returns the address.
  std::string at(const void* return_address) const;

 private:
  struct function {
    std::uint64_t end;
    std::string name;  // mangled
  };
  std::map<std::uint64_t, function> by_begin_;
};

}  // namespace elidex::sim
