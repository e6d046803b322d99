// The GGUF reader: files written byte by byte, in both versions and byte orders, whole, cut, damaged and absurd.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <rotary/gguf_file.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "allocations.hpp"
#include "gguf_writer.hpp"
#include "guarded.hpp"
#include "refusals.hpp"

namespace {

using namespace gguf_writer;
using refusals::expect_refused;
using rotary::gguf_array;
using rotary::gguf_file;
using rotary::gguf_value;
using rotary::gguf_view;

// The bytes in front of a page that cannot be read.
class placed {
 public:
  explicit placed(const bytes& data) : memory_(data.size()) {
    for (std::size_t i = 0; i < data.size(); ++i) memory_[i] = data[i];
  }
  gguf_view view() const { return gguf_view(memory_.data(), memory_.size()); }

 private:
  guarded::array<unsigned char> memory_;
};

void expect_bad(const file& written, std::initializer_list<const char*> parts) {
  const placed data(written.all());
  expect_refused([&] { data.view(); }, "gguf_view", parts);
}

// Every type of value, and tensors, the last of which ends at the last byte.
file of_every_type(bool big, std::uint32_t version) {
  file out(big, version);
  out.key("u8", type_u8).number(200, 1);
  out.key("i8", type_i8).number(0xfb, 1);
  out.key("u16", type_u16).number(60000, 2);
  out.key("i16", type_i16).number(0x8000, 2);
  out.key("u32", type_u32).number(4000000000, 4);
  out.key("i32", type_i32).number(0xfffffffe, 4);
  out.key("f32", type_f32).float32(0.75f);
  out.key("yes", type_bool).number(1, 1);
  out.key("text", type_string).text("sch\xc3\xb6n");
  out.key("u64", type_u64).number(0xffffffffffffffff, 8);
  out.key("i64", type_i64).number(0x8000000000000001, 8);
  out.key("f64", type_f64).float64(0.1);
  out.key("numbers", type_array).array(type_i16, 3).number(1, 2).number(0xffff, 2).number(300, 2);
  out.key("words", type_array).array(type_string, 3).text("").text("a").text("bcd");
  out.key("flags", type_array).array(type_bool, 2).number(1, 1).number(0, 1);
  out.key("nothing", type_array).array(type_string, 0);
  out.tensor("half", {2, 2}, 1,
             big ? bytes{0x3c, 0, 0xc0, 0, 0, 1, 0x7b, 0xff} : bytes{0, 0x3c, 0, 0xc0, 1, 0, 0xff, 0x7b});
  out.tensor("quantised", {256, 3}, 12, bytes(3 * 144));
  out.f32_tensor("rope_freqs.weight", {1.0f, 1.5f, 8.0f});
  return out;
}

template <class Body>
void for_each_format(const Body& body) {
  for (const bool big : {false, true}) {
    for (const std::uint32_t version : {2u, 3u}) {
      SCOPED_TRACE((big ? "big-endian version " : "little-endian version ") + std::to_string(version));
      body(big, version);
    }
  }
}

template <class T>
T get(const gguf_view& view, const char* key) {
  const gguf_value* const value = view.find(key);
  if (value == nullptr) throw std::runtime_error(std::string("no ") + key);
  return value->as<T>();
}

TEST(GgufFile, ValuesOfEveryTypeInEveryFormat) {
  for_each_format([](bool big, std::uint32_t version) {
    const placed data(of_every_type(big, version).all());
    const gguf_view view = data.view();
    EXPECT_EQ(view.version(), version);
    EXPECT_EQ(view.big_endian(), big);
    EXPECT_EQ(view.values().size(), 16u);
    EXPECT_EQ(get<int>(view, "u8"), 200);
    EXPECT_EQ(get<int>(view, "i8"), -5);
    EXPECT_EQ(get<std::uint16_t>(view, "u16"), 60000);
    EXPECT_EQ(get<std::int16_t>(view, "i16"), -32768);
    EXPECT_EQ(get<std::int64_t>(view, "u32"), 4000000000);
    EXPECT_EQ(get<double>(view, "i32"), -2.0);
    EXPECT_EQ(get<double>(view, "f32"), 0.75);
    EXPECT_TRUE(get<bool>(view, "yes"));
    EXPECT_EQ(get<std::string_view>(view, "text"), "sch\xc3\xb6n");
    EXPECT_EQ(get<std::uint64_t>(view, "u64"), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(get<std::int64_t>(view, "i64"), std::numeric_limits<std::int64_t>::min() + 1);
    EXPECT_EQ(get<double>(view, "f64"), 0.1);
    EXPECT_EQ(view.find("absent"), nullptr);
    EXPECT_EQ(view.find("tex"), nullptr);
  });
}

TEST(GgufFile, ArraysInEveryFormat) {
  for_each_format([](bool big, std::uint32_t version) {
    const placed data(of_every_type(big, version).all());
    const gguf_view view = data.view();
    std::vector<int> numbers;
    for (const gguf_value number : get<gguf_array>(view, "numbers")) numbers.push_back(number.as<int>());
    EXPECT_EQ(numbers, (std::vector<int>{1, -1, 300}));
    std::vector<std::string> words;
    for (const gguf_value word : get<gguf_array>(view, "words")) words.emplace_back(word.as<std::string_view>());
    EXPECT_EQ(words, (std::vector<std::string>{"", "a", "bcd"}));
    std::vector<bool> flags;
    for (const gguf_value flag : get<gguf_array>(view, "flags")) flags.push_back(flag.as<bool>());
    EXPECT_EQ(flags, (std::vector<bool>{true, false}));
    EXPECT_EQ(get<gguf_array>(view, "nothing").size(), 0u);
    EXPECT_EQ(get<gguf_array>(view, "numbers").size(), 3u);
    EXPECT_EQ(get<gguf_array>(view, "words").element_type(), rotary::gguf_type::string);
  });
}

TEST(GgufFile, TensorsInEveryFormat) {
  for_each_format([](bool big, std::uint32_t version) {
    const placed data(of_every_type(big, version).all());
    const gguf_view view = data.view();
    EXPECT_EQ(view.tensors().size(), 3u);
    EXPECT_EQ(view.tensor_numbers("half"), (std::vector<double>{1.0, -2.0, 0x1p-24, 65504.0}));
    EXPECT_EQ(view.tensor_numbers("rope_freqs.weight"), (std::vector<double>{1.0, 1.5, 8.0}));
    EXPECT_TRUE(view.tensor_numbers("absent").empty());
    const rotary::gguf_tensor& quantised = *view.find_tensor("quantised");
    EXPECT_EQ(quantised.bytes, 3u * 144u);
    EXPECT_EQ(quantised.dimensions, 2u);
    EXPECT_EQ(quantised.extents[0], 256u);
    EXPECT_EQ(quantised.extents[1], 3u);
    EXPECT_EQ(quantised.extents[2], 1u);
    EXPECT_EQ(view.find_tensor("absent"), nullptr);
    expect_refused([&] { view.tensor_numbers("quantised"); }, "gguf_view::tensor_numbers",
                   {"\"quantised\"", "12", "Q4_K", "F32"});
  });
}

TEST(GgufFile, ValuesAreNotConvertedSilently) {
  const placed data(of_every_type(false, 3).all());
  const gguf_view view = data.view();
  expect_refused([&] { get<std::int8_t>(view, "u8"); }, "gguf_value", {"\"u8\"", "200", "an integer"});
  expect_refused([&] { get<unsigned>(view, "i8"); }, "gguf_value", {"\"i8\"", "-5", "an integer"});
  expect_refused([&] { get<std::uint64_t>(view, "i64"); }, "gguf_value", {"\"i64\"", "-9.2", "an integer"});
  expect_refused([&] { get<std::int64_t>(view, "u64"); }, "gguf_value", {"\"u64\"", "1.8", "an integer"});
  expect_refused([&] { get<int>(view, "f32"); }, "gguf_value", {"\"f32\"", "0.75", "an integer"});
  expect_refused([&] { get<int>(view, "yes"); }, "gguf_value", {"\"yes\"", "boolean", "an integer"});
  expect_refused([&] { get<bool>(view, "u8"); }, "gguf_value", {"\"u8\"", "200", "a boolean"});
  expect_refused([&] { get<double>(view, "u64"); }, "gguf_value", {"\"u64\"", "exactly"});
  expect_refused([&] { get<double>(view, "text"); }, "gguf_value", {"\"text\"", "string \"sch??n\"", "a number"});
  expect_refused([&] { get<std::string_view>(view, "f64"); }, "gguf_value", {"\"f64\"", "0.1", "a string"});
  expect_refused([&] { get<gguf_array>(view, "f64"); }, "gguf_value", {"\"f64\"", "0.1", "an array"});
  expect_refused([&] { get<double>(view, "words"); }, "gguf_value", {"\"words\"", "array of 3", "a number"});
}

// ---- cut and damaged files

TEST(GgufFile, CutAtEveryByteIsRefusedWithoutReadingBeyond) {
  for_each_format([](bool big, std::uint32_t version) {
    const bytes whole = of_every_type(big, version).all();
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const placed cut(bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      ASSERT_FALSE(refusals::text_of([&] { cut.view(); }).empty()) << "cut to " << size << " bytes";
    }
  });
}

// Reads all that a view offers.
double sum_of(const gguf_view& view) {
  double sum = 0.0;
  const auto add = [&](const gguf_value& value) {
    if (value.type() == rotary::gguf_type::boolean) sum += value.as<bool>() ? 1.0 : 0.0;
    if (value.type() == rotary::gguf_type::string) {
      for (const char c : value.as<std::string_view>()) sum += c;
    }
    if (value.is_number()) {
      try {
        sum += value.as<double>();
      } catch (const rotary::error&) {
      }
    }
  };
  for (const auto& entry : view.values()) {
    add(entry.second);
    if (entry.second.type() != rotary::gguf_type::array) continue;
    for (const gguf_value element : entry.second.as<gguf_array>()) add(element);
  }
  for (const auto& entry : view.tensors()) {
    for (std::size_t i = 0; i < entry.second.bytes; ++i) sum += entry.second.data[i];
  }
  return sum;
}

TEST(GgufFile, AnyByteChangedIsReadWithinTheFileOrRefused) {
  for_each_format([](bool big, std::uint32_t version) {
    const bytes whole = of_every_type(big, version).all();
    std::size_t refused = 0, read = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int change : {0x01, 0x08, 0x80, 0xff}) {
        bytes damaged = whole;
        damaged[at] = static_cast<unsigned char>(damaged[at] ^ change);
        const placed data(damaged);
        allocations::largest = 0;
        try {
          volatile const double sum = sum_of(data.view());
          static_cast<void>(sum);
          ++read;
        } catch (const rotary::error&) {
          ++refused;
        }
        ASSERT_LT(allocations::largest, 1024u) << "byte " << at << " ^ " << change;
      }
    }
    EXPECT_GT(refused, 100u);
    EXPECT_GT(read, 100u);
  });
}

// ---- every kind of nonsense

TEST(GgufFile, OtherFilesAndVersions) {
  const placed png(bytes{0x89, 'P', 'N', 'G', 13, 10, 26, 10});
  expect_refused([&] { png.view(); }, "gguf_view", {"89 50 4e 47", "47 47 55 46"});
  expect_bad(file(false, 1), {"version at byte 4 is 1", "2 or 3"});
  expect_bad(file(true, 1), {"version at byte 4 is 1", "2 or 3"});
  expect_bad(file(false, 4), {"version at byte 4 is 4", "2 or 3"});
  expect_bad(file(false, 0), {"version at byte 4 is 0", "2 or 3"});
  expect_refused([] { gguf_view(nullptr, 0); }, "gguf_view", {"the magic number at byte 0", "0 remain"});
}

TEST(GgufFile, CountsThatTheFileDoesNotCover) {
  for_each_format([](bool big, std::uint32_t version) {
    const std::uint64_t absurd[] = {3, 1000000, std::uint64_t{1} << 40, std::uint64_t{1} << 63, ~std::uint64_t{0}};
    for (const std::uint64_t count : absurd) {
      const std::string text = std::to_string(count);
      file keys(big, version), tensors(big, version), words(big, version), numbers(big, version), name(big, version),
          string(big, version);
      keys.key("k", type_u8).number(1, 1).keys = count;
      tensors.tensors = count;
      words.key("words", type_array).array(type_string, count).number(0, 7);
      numbers.key("numbers", type_array).array(type_u16, count).number(0, 1);
      string.key("text", type_string).number(count, 8);
      name.number(count, 8).number(0, 8).keys = 1;
      allocations::largest = 0;
      expect_bad(keys, {"the key count at byte 24", text.c_str(), "at most 1"});
      expect_bad(tensors, {"the tensor count at byte 24", text.c_str(), "at most 0"});
      expect_bad(words, {"the array length of words", text.c_str(), "at most 0"});
      expect_bad(numbers, {"the array length of numbers", text.c_str(), "at most 0"});
      expect_bad(string, {"the length of the string of text", text.c_str(), "at most 0"});
      if (count > 8) expect_bad(name, {"the length of a key", text.c_str(), "at most 8"});
      EXPECT_LT(allocations::largest, 2048u);
    }
  });
}

TEST(GgufFile, ValuesThatAreNone) {
  expect_bad(file().key("k", 13).number(0, 8), {"the type of \"k\" at byte 33 is 13", "at most 12"});
  expect_bad(file().key("k", type_array).array(type_array, 1).array(type_u8, 1).number(0, 1),
             {"\"k\" at byte 37 is 9", "nested"});
  expect_bad(file().key("k", type_array).array(77, 1).number(0, 8), {"the type of \"k\" at byte 37 is 77"});
  expect_bad(file().key("k", type_bool).number(2, 1), {"the boolean \"k\"", "is 2", "0 or 1"});
  expect_bad(file().key("k", type_array).array(type_bool, 2).number(1, 1).number(9, 1), {"the boolean \"k\"", "is 9"});
  expect_bad(file().key("k", type_u8).number(0, 1).key("k", type_u8).number(0, 1),
             {"the key \"k\" at byte 38", "second time"});
  expect_bad(file().key(std::string(65536, 'x'), type_u8).number(0, 1),
             {"the length of a key at byte 24", "65536", "at most 65535"});
  expect_bad(file().key(std::string("a\n\0b\x1b", 5), 13), {"\"a??b?\""});
  expect_bad(file().key(std::string(300, 'x'), 13), {"xxxx", "is 13"});
}

TEST(GgufFile, TensorsThatAreNone) {
  const std::uint64_t most = ~std::uint64_t{0};
  expect_bad(file().tensor("t", {}, 0, bytes(4)), {"number of dimensions of tensor \"t\" at byte 24 is 0", "1 to 4"});
  expect_bad(file().tensor("t", {1, 1, 1, 1, 1}, 0, bytes(4)), {"tensor \"t\" at byte 24 is 5", "1 to 4"});
  expect_bad(file().tensor("t", {2, 0}, 0, bytes(8)), {"extent 1 of tensor \"t\"", "is 0", "positive"});
  expect_bad(file().tensor("t", {33}, 2, bytes(36)), {"extent 0 of tensor \"t\"", "is 33", "multiple of 32"});
  expect_bad(file().tensor("t", {most / 4 + 1}, 0, bytes(8)), {"extent 0 of tensor \"t\"", "fit into memory"});
  expect_bad(file().tensor("t", {1u << 31, 1u << 31, 1u << 31}, 0, bytes(8)), {"extent 1 of tensor \"t\""});
  expect_bad(file().tensor("t", {1u << 31, 1u << 31, 1u << 31}, 999, bytes(8)), {"extent 2 of tensor \"t\""});
  expect_bad(file().tensor("t", {1u << 31, 1u << 28}, 0, bytes(8)), {"the offset of tensor \"t\"", "8 bytes of data"});
  expect_bad(file().tensor("t", {2}, 0, bytes(7)), {"\"t\", 8 bytes", "the 7 bytes of data"});
  expect_bad(file().tensor("a", {4}, 0, bytes(64)).tensor_at("t", {1}, 0, 16),
             {"offset of tensor \"t\"", "is 16", "multiple of 32"});
  expect_bad(file().tensor("a", {4}, 0, bytes(64)).tensor_at("t", {1}, 0, 64), {"offset of tensor \"t\"", "is 64"});
  expect_bad(file().tensor("a", {4}, 0, bytes(64)).tensor_at("t", {1}, 0, most - 31), {"offset of tensor \"t\""});
  expect_bad(file().tensor_at("t", {1}, 0, 0), {"offset of tensor \"t\"", "the 0 bytes of data"});
  expect_bad(file().tensor("t", {1}, 0, bytes(4)).tensor("t", {1}, 0, bytes(4)), {"\"t\" at byte 57", "second time"});
}

// "a" of 64 bytes, or of a type whose size is not known, and "b" of 4, both within 256 bytes of data that "last"
// begins.
TEST(GgufFile, TensorsThatOverlap) {
  const auto at = [](std::uint64_t a, std::uint64_t b, std::uint32_t type_of_a = 0) {
    file out;
    out.tensor_at("a", {16}, type_of_a, a).tensor_at("b", {1}, 0, b);
    out.tensor("first", {1}, 0, bytes(252)).tensor("last", {1}, 0, bytes(4));
    return out;
  };
  for (const std::uint32_t known : {0u, 999u}) {
    expect_bad(at(64, 64, known), {"the offset of tensor", "is 64; it must be at least"});
    expect_bad(at(0, 128, known), {"the offset of tensor", "is 0; it must be at least"});
    EXPECT_NO_THROW(placed(at(32, 96, known).all()).view());
    EXPECT_NO_THROW(placed(at(96, 64, known).all()).view());
  }
  expect_bad(at(64, 96), {"the offset of tensor \"b\" is 96; it must be at least 128, where tensor \"a\" ends"});
  expect_bad(at(64, 256), {"the offset of tensor", "is 256; it must be at least 260"});
}

TEST(GgufFile, AlignmentStatedByTheFile) {
  const auto with = [](std::uint32_t stated, std::size_t used) {
    file out(false, 3, used);
    out.key("general.alignment", type_u32).number(stated, 4);
    return out.f32_tensor("a", {1.0f}).f32_tensor("b", {2.0f, 3.0f});
  };
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    const placed data(with(alignment, alignment).all());
    EXPECT_EQ(data.view().tensor_numbers("b"), (std::vector<double>{2.0, 3.0})) << alignment;
  }
  expect_bad(with(0, 32), {"\"general.alignment\" is 0", "power of 2"});
  expect_bad(with(48, 48), {"\"general.alignment\" is 48", "power of 2"});
  expect_bad(with(1u << 31, 32), {"offset of tensor", "2147483648"});
  file text;
  text.key("general.alignment", type_string).text("32");
  const placed data(text.all());
  expect_refused([&] { data.view(); }, "gguf_value", {"\"general.alignment\"", "32"});
}

// A model that holds a tensor of a type from next year still has readable keys.
TEST(GgufFile, TensorsOfUnknownTypeAreListedWithoutASize) {
  const placed data(file().tensor("new", {7}, 999, bytes(64)).f32_tensor("b", {2.0f}).all());
  const gguf_view view = data.view();
  EXPECT_EQ(view.find_tensor("new")->bytes, 0u);
  EXPECT_EQ(view.tensor_numbers("b"), (std::vector<double>{2.0}));
  expect_refused([&] { view.tensor_numbers("new"); }, "gguf_view::tensor_numbers", {"\"new\"", "999", "unknown"});

  // The infos end at byte 59 and the data would begin at byte 64.
  bytes cut = file().tensor_at("new", {7}, 999, 0).all();
  for (const std::size_t size : {59u, 60u, 63u}) {
    cut.resize(size);
    const placed short_of_data(cut);
    expect_refused([&] { short_of_data.view(); }, "gguf_view", {"offset of tensor \"new\"", "the 0 bytes of data"});
  }
  cut.resize(64);
  EXPECT_EQ(placed(cut).view().find_tensor("new")->bytes, 0u);
}

// ---- on disk

// The tensors of a copy would be in the memory of the original.
static_assert(!std::is_copy_constructible<gguf_file>::value && !std::is_copy_assignable<gguf_file>::value);
static_assert(std::is_move_constructible<gguf_file>::value && std::is_move_assignable<gguf_file>::value);

TEST(GgufFile, MappedFromDisk) {
  const std::string path = testing::TempDir() + "gguf_file_test.gguf";
  const bytes whole = of_every_type(false, 3).all();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(whole.data()), static_cast<std::streamsize>(whole.size()));
  gguf_file first(path.c_str());
  const gguf_file moved(std::move(first));
  EXPECT_EQ(get<std::string_view>(moved.view(), "text"), "sch\xc3\xb6n");
  EXPECT_EQ(moved.view().tensor_numbers("rope_freqs.weight"), (std::vector<double>{1.0, 1.5, 8.0}));
  std::ofstream(path, std::ios::binary | std::ios::trunc).flush();
  expect_refused([&] { gguf_file empty(path.c_str()); }, "gguf_view", {"the magic number", "0 remain"});
  std::remove(path.c_str());
  expect_refused([&] { gguf_file absent(path.c_str()); }, "gguf_file", {"gguf_file_test.gguf", "can be read"});
  expect_refused([&] { gguf_file directory("/"); }, "gguf_file", {"path is \"/\"", "must be a file"});
}

}  // namespace
