// examples/engines/onnx.hpp: against the node tests of the onnx package where it is installed, and against the
// operators' definition.
#include "onnx.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "engines.hpp"

namespace {

using namespace engines_test;
using engines::onnx::attributes;
using engines::onnx::caches;
using engines::onnx::shape;
using nlohmann::json;
using rotary::float16;

shape shape_of(const std::vector<std::int64_t>& dims) {
  shape made = {dims.size(), {}};
  for (std::size_t i = 0; i < dims.size() && i < 4; ++i) made.dims[i] = dims[i];
  return made;
}

// ---- the package's own tests

TEST(Onnx, NodeTestsOfThePackage) {
  std::ifstream file(ROTARY_ONNX_NODE_TESTS);
  if (!file)
    GTEST_SKIP() << "no node tests of ONNX: configure found no Python with the onnx package (pip install onnx)";
  const json all = json::parse(file);
  if (all.at("tests").empty()) GTEST_SKIP() << "no node tests of ONNX: " << all.at("reason");
  double most = 0.0;
  for (const json& test : all.at("tests")) {
    SCOPED_TRACE(test.at("name").get<std::string>());
    ASSERT_EQ(test.at("x").at("type"), "float32");
    attributes node;
    for (const auto& given : test.at("attributes").items()) {
      if (given.key() == "interleaved") {
        node.interleaved = given.value();
      } else if (given.key() == "num_heads") {
        node.num_heads = given.value();
      } else if (given.key() == "rotary_embedding_dim") {
        node.rotary_embedding_dim = given.value();
      } else {
        FAIL() << "unknown attribute " << given.key();
      }
    }
    const std::vector<float> x = test.at("x").at("values"), cos = test.at("cos").at("values");
    const std::vector<float> sin = test.at("sin").at("values"), expected = test.at("output").at("values");
    const bool has_ids = test.contains("position_ids");
    const std::vector<std::int64_t> ids =
        has_ids ? test.at("position_ids").at("values").get<std::vector<std::int64_t>>() : std::vector<std::int64_t>();
    std::vector<float> output(x.size());
    engines::onnx::rotary_embedding<float>(x.data(), shape_of(test.at("x").at("shape")),
                                           {cos.data(), sin.data(), shape_of(test.at("cos").at("shape"))},
                                           has_ids ? ids.data() : nullptr, node, output.data());
    ASSERT_EQ(expected.size(), output.size());
    for (std::size_t i = 0; i < output.size(); ++i) {
      most = reference::larger(most, std::fabs(number(output[i]) - number(expected[i])));
    }
  }
  std::printf("%zu node tests of onnx %s: largest difference %.2g\n", all.at("tests").size(),
              all.at("onnx").get<std::string>().c_str(), most);
  expect_at_most(most, 1.2e-7);  // inputs, cos and sin are in [0, 1): a last place of results up to 2
}

// ---- the definition

template <class T>
struct scene {
  std::size_t batch, tokens, heads, head_size, rotary_dim;
  bool transposed;
  std::vector<T> x, cos, sin;

  scene(bool of_four_axes, std::size_t rotary, std::size_t cache_rows)
      : batch(2),
        tokens(3),
        heads(5),
        head_size(16),
        rotary_dim(rotary),
        transposed(of_four_axes),
        x(numbers<T>(batch * tokens * heads * head_size, 1)),
        cos(numbers<T>(cache_rows * rotary / 2, 2)),
        sin(numbers<T>(cache_rows * rotary / 2, 3)) {}

  shape of_x() const {
    const auto n = [](std::size_t value) { return static_cast<std::int64_t>(value); };
    if (transposed) return shape_of({n(batch), n(heads), n(tokens), n(head_size)});
    return shape_of({n(batch), n(tokens), n(heads * head_size)});
  }

  // Row row_of(b, t) of the caches for token t of sequence b.
  template <class RowOf>
  void expect(const std::vector<T>& output, bool interleaved, const RowOf& row_of) const {
    reference::rows<long double> rows;
    rows.pairs = rotary_dim / 2;
    for (const T value : cos) rows.cos.push_back(static_cast<long double>(number(value)));
    for (const T value : sin) rows.sin.push_back(static_cast<long double>(number(value)));
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t h = 0; h < heads; ++h) {
          const std::size_t head = transposed ? (b * heads + h) * tokens + t : (b * tokens + t) * heads + h;
          expect_head(&x[head * head_size], &output[head * head_size], head_size, interleaved, rows, row_of(b, t),
                      "sequence " + std::to_string(b) + ", token " + std::to_string(t));
        }
      }
    }
  }
};

template <class T>
void expect_definition(bool transposed, bool interleaved, std::size_t rotary_dim) {
  SCOPED_TRACE(std::string(transposed ? "4" : "3") + " axes, " + (interleaved ? "interleaved, " : "halves, ") +
               std::to_string(rotary_dim) + " channels rotate");
  attributes node;
  node.interleaved = interleaved;
  if (rotary_dim != 16) node.rotary_embedding_dim = static_cast<std::int64_t>(rotary_dim);
  if (rotary_dim != 16 && !transposed) node.num_heads = 5;
  const std::int64_t width = static_cast<std::int64_t>(rotary_dim / 2);

  const scene<T> by_position(transposed, rotary_dim, 20);
  const caches<T> table = {by_position.cos.data(), by_position.sin.data(), shape_of({20, width})};
  const std::vector<std::int64_t> ids = {4, 0, 19, 7, 7, 11}, offset = {17};
  const auto row_of_id = [&](std::size_t b, std::size_t t) { return static_cast<std::size_t>(ids[3 * b + t]); };
  std::vector<T> output(by_position.x.size());
  for (std::size_t part = 0; part < 2; ++part) {
    engines::onnx::rotary_embedding(by_position.x.data(), by_position.of_x(), table, ids.data(), node, output.data(),
                                    {part, 2});
  }
  by_position.expect(output, interleaved, row_of_id);
  std::vector<T> again(output.size());
  engines::onnx::microsoft_rotary_embedding(by_position.x.data(), by_position.of_x(), ids.data(), ids.size(), table,
                                            node, again.data());
  by_position.expect(again, interleaved, row_of_id);
  engines::onnx::microsoft_rotary_embedding(by_position.x.data(), by_position.of_x(), offset.data(), 1, table, node,
                                            output.data());
  by_position.expect(output, interleaved, [](std::size_t, std::size_t t) { return 17 + t; });

  const scene<T> by_token(transposed, rotary_dim, 6);
  engines::onnx::rotary_embedding(by_token.x.data(), by_token.of_x(),
                                  {by_token.cos.data(), by_token.sin.data(), shape_of({2, 3, width})}, nullptr, node,
                                  output.data());
  by_token.expect(output, interleaved, [](std::size_t b, std::size_t t) { return 3 * b + t; });
}

TEST(Onnx, IsItsDefinition) {
  for (const bool transposed : {false, true}) {
    for (const bool interleaved : {false, true}) {
      for (const std::size_t rotary_dim : {16u, 10u}) expect_definition<float>(transposed, interleaved, rotary_dim);
      expect_definition<float16>(transposed, interleaved, 10);
    }
  }
}

TEST(Onnx, CachesOfTheWholeHeadServeAPartOfIt) {
  scene<float> of(true, 16, 20);
  attributes node;
  node.rotary_embedding_dim = 10;
  const std::vector<std::int64_t> ids = {4, 0, 19, 7, 7, 11};
  std::vector<float> output(of.x.size());
  engines::onnx::rotary_embedding<float>(of.x.data(), of.of_x(), {of.cos.data(), of.sin.data(), shape_of({20, 8})},
                                         ids.data(), node, output.data());
  std::vector<float> cos, sin;
  for (std::size_t row = 0; row < 20; ++row) {
    cos.insert(cos.end(), &of.cos[8 * row], &of.cos[8 * row] + 5);
    sin.insert(sin.end(), &of.sin[8 * row], &of.sin[8 * row] + 5);
  }
  of.cos = cos;
  of.sin = sin;
  of.rotary_dim = 10;
  of.expect(output, false, [&](std::size_t b, std::size_t t) { return static_cast<std::size_t>(ids[3 * b + t]); });
}

TEST(Onnx, PackedBatchesMayBeLongerThanTheCaches) {
  const std::vector<float> x(5 * 4, 1.0f), cache(3 * 2, 0.5f);
  const std::vector<std::int64_t> ids = {0, 1, 2, 0, 1};
  std::vector<float> output(x.size(), 7.0f);
  const std::vector<float> before = output;
  const caches<float> by = {cache.data(), cache.data(), shape_of({3, 2})};
  attributes node;
  const auto call = [&] {
    engines::onnx::microsoft_rotary_embedding(x.data(), shape_of({1, 5, 4}), ids.data(), 5, by, node, output.data());
  };
  expect_refused(call, "sequence length is 5");
  EXPECT_EQ(output, before);
  node.is_packed_batching = 1;
  call();
  EXPECT_EQ(output[0], 0.0f);
}

TEST(Onnx, FigureOfTheCaches) {
  const double error = float_angle_error(float_inverse_frequencies(128, 10000.0f), 10000.0, 131071);
  std::printf("caches of float angles at position 131071 (theta 10000, 128 channels): %.2g off\n", error);
  expect_figure(error, 0.0042);
}

// Calls on x of [2, 3, 32] or as told, which must be refused before anything is written.
struct OnnxRefuses : testing::Test {
  const std::vector<float> x = std::vector<float>(2 * 3 * 32, 1.0f), cache = std::vector<float>(20 * 8, 0.5f);
  std::vector<float> output = std::vector<float>(x.size(), 7.0f);
  const std::vector<float> before = output;
  std::vector<std::int64_t> ids = {0, 1, 2, 3, 4, 5};

  caches<float> by(const std::vector<std::int64_t>& of_cache) const {
    return {cache.data(), cache.data(), shape_of(of_cache)};
  }
  void expect(const std::vector<std::int64_t>& of_x, const std::vector<std::int64_t>& of_cache, const attributes& node,
              const std::string& part, std::size_t count = 6) {
    expect_refused(
        [&] {
          engines::onnx::microsoft_rotary_embedding(x.data(), shape_of(of_x), ids.data(), count, by(of_cache), node,
                                                    output.data());
        },
        part);
    EXPECT_EQ(output, before);
  }
};

TEST_F(OnnxRefuses, ShapesThatDoNotFit) {
  expect({6, 32}, {20, 8}, {}, "rank of x is 2");
  expect({2, 3, 24}, {20, 8}, {}, "hidden size is 24");
  expect({2, -3, 32}, {20, 8}, {}, "is -3");
  expect({2, 3, 32}, {2, 3, 8}, {}, "rank of the caches is 3");
  expect({2, 2, 3, 16}, {20, 6}, {}, "rotary dim is 16");
  expect({2, 3, 32}, {20, 0}, {}, "width is 0");
  for (const std::int64_t width : {INT64_MAX, INT64_MAX / 2 + 1}) {
    expect({2, 3, 32}, {20, width}, {}, "width is " + std::to_string(width));
  }
  const auto expect_without_ids = [&](const std::vector<std::int64_t>& of_cache, const std::string& part) {
    expect_refused(
        [&] {
          engines::onnx::rotary_embedding(x.data(), shape_of({2, 3, 32}), by(of_cache), nullptr, {}, output.data());
        },
        part);
    EXPECT_EQ(output, before);
  };
  expect_without_ids({20, 8}, "rank of the caches is 2");
  expect_without_ids({3, 2, 8}, "axis 0 is 3");
}

TEST_F(OnnxRefuses, HeadsAndRotaryDimsThatDoNotFit) {
  attributes node;
  node.num_heads = 3;
  expect({2, 3, 32}, {20, 8}, node, "hidden size is 32");
  expect({2, 2, 3, 16}, {20, 8}, node, "num_heads is 3");
  node = {};
  node.rotary_embedding_dim = 8;
  expect({2, 3, 32}, {20, 4}, node, "num_heads is 0");
  node.num_heads = 2;
  expect({2, 3, 32}, {20, 6}, node, "rotary dim is 8");
  node.rotary_embedding_dim = 7;
  expect({2, 3, 32}, {20, 8}, node, "rotary dim is 7");
  node.rotary_embedding_dim = 32;
  node.num_heads = 4;
  expect({2, 3, 32}, {5, 16}, node, "head_dim = 8");
}

TEST_F(OnnxRefuses, ScalesOtherThanOne) {
  const auto expect_scale = [&](float scale, const char* part) {
    attributes node;
    node.scale = scale;
    expect({2, 3, 32}, {20, 8}, node, part);
  };
  expect_scale(2.0f, "onnx: scale is 2; it must be 1.");
  expect_scale(1e30f, "scale is 1e+30;");
  expect_scale(0.0f, "scale is 0;");
  expect_scale(std::nanf(""), "nan;");  // of either sign
}

TEST_F(OnnxRefuses, PositionsThatTheCachesLack) {
  expect({2, 3, 32}, {20, 8}, {}, "size of position_ids is 5", 5);
  ids[5] = 20;
  expect({2, 3, 32}, {20, 8}, {}, "20");
  ids[0] = 18;
  expect({2, 3, 32}, {20, 8}, {}, "18 to 20", 1);
  expect_refused(
      [&] {
        engines::onnx::microsoft_rotary_embedding(x.data(), shape_of({2, 3, 32}), nullptr, 1, by({20, 8}), {},
                                                  output.data());
      },
      "position_ids");
  EXPECT_EQ(output, before);
}

}  // namespace
