// Breaks a contract and shows the text on stdout: what() of the exception or, without exceptions, what the handler
// gets; `error_text default` leaves it to the library, which must print it to stderr and abort.
#include <csetjmp>
#include <cstdio>
#include <rotary/rotary.hpp>

namespace {

void break_a_contract() { rotary::make_spectrum(128, -10000.0); }

#ifndef __cpp_exceptions
std::jmp_buf after_the_call;

void print_and_leave(const rotary::error& error) {
  std::puts(error.what());
  std::longjmp(after_the_call, 1);
}
#endif

}  // namespace

int main(int argc, char**) {
#ifdef __cpp_exceptions
  static_cast<void>(argc);
  try {
    break_a_contract();
  } catch (const rotary::error& error) {
    std::puts(error.what());
    return 0;
  }
#else
  if (argc == 1) {
    if (rotary::set_error_handler(print_and_leave) != nullptr) return 3;
    if (setjmp(after_the_call) != 0) {
      const bool was_ours = rotary::set_error_handler(nullptr) == print_and_leave;
      return was_ours ? 0 : 3;
    }
  }
  break_a_contract();
#endif
  return 2;  // nothing was refused
}
