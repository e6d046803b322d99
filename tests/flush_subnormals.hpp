// The floating-point mode in which many programs run their kernels: subnormal numbers count as zero.
#ifndef ROTARY_TESTS_FLUSH_SUBNORMALS_HPP
#define ROTARY_TESTS_FLUSH_SUBNORMALS_HPP

#include <cstdint>

/// Sets FTZ and DAZ (x86) or FZ (Arm) of this thread as long as it lives.
class flush_subnormals {
 public:
  explicit flush_subnormals(bool wanted) : before_(read()) {
    if (wanted) write(before_ | bits);
  }
  flush_subnormals(const flush_subnormals&) = delete;
  flush_subnormals& operator=(const flush_subnormals&) = delete;
  ~flush_subnormals() { write(before_); }

  static constexpr bool exists =
#if defined(__x86_64__) || defined(__aarch64__)
      true;
#else
      false;
#endif

 private:
#if defined(__x86_64__)
  using word = std::uint32_t;
  static constexpr word bits = 0x8040u;
  static word read() { return __builtin_ia32_stmxcsr(); }
  static void write(word value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
  using word = std::uint64_t;
  static constexpr word bits = word{1} << 24;
  static word read() {
    word value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(word value) { __asm__ volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
#else
      using word = unsigned;
  static constexpr word bits = 0;
  static word read() { return 0; }
  static void write(word) {}
#endif
  word before_;
};

#endif
