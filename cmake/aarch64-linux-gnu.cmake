# Cross build for 64-bit Arm (NEON); the tests run under the emulator.
# Debian/Ubuntu: apt-get install g++-aarch64-linux-gnu qemu-user googletest
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc) # GoogleTest looks for threads in C
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
