// The cross product with bfloat16 tensors.
#include "cross_product.hpp"

namespace {

using cross_product::comparison;
using rotary::bfloat16;

TEST(CrossProductBf16, Layouts) { comparison<bfloat16, bfloat16, float>().every_layout(); }
TEST(CrossProductBf16, LayoutsToFloat) { comparison<bfloat16, float, float>().every_layout(); }
TEST(CrossProductBf16, TableForms) { comparison<bfloat16, bfloat16, float>().every_form(); }
TEST(CrossProductBf16, TableFormsToFloat) { comparison<bfloat16, float, float>().every_form(); }
TEST(CrossProductBf16, TableFormsOfBfloat16) { comparison<bfloat16, bfloat16, bfloat16>().every_form(); }

}  // namespace
