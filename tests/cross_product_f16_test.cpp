// The cross product with float16 tensors.
#include "cross_product.hpp"

namespace {

using cross_product::comparison;
using rotary::float16;

TEST(CrossProductF16, Layouts) { comparison<float16, float16, float>().every_layout(); }
TEST(CrossProductF16, LayoutsToFloat) { comparison<float16, float, float>().every_layout(); }
TEST(CrossProductF16, TableForms) { comparison<float16, float16, float>().every_form(); }
TEST(CrossProductF16, TableFormsToFloat) { comparison<float16, float, float>().every_form(); }
TEST(CrossProductF16, TableFormsOfFloat16) { comparison<float16, float16, float16>().every_form(); }

}  // namespace
