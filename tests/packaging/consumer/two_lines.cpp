#include <rotary/rotary.hpp>
int main() {}
