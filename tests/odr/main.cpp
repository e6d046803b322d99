#include <cstdio>

int rotation_plain();
int rotation_avx2();

int main() {
  std::puts("compiled without flags");
  int failures = rotation_plain();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    std::puts("compiled with -mavx2 -mfma");
    failures += rotation_avx2();
  }
  return failures;
}
