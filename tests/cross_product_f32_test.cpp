// The cross product with float tensors.
#include "cross_product.hpp"

namespace {

using cross_product::comparison;
using rotary::bfloat16;
using rotary::float16;

TEST(CrossProductF32, Layouts) { comparison<float, float, float>().every_layout(); }
TEST(CrossProductF32, LayoutsToBfloat16) { comparison<float, bfloat16, float>().every_layout(); }
TEST(CrossProductF32, TableForms) { comparison<float, float, float>().every_form(); }
TEST(CrossProductF32, TableFormsToBfloat16) { comparison<float, bfloat16, float>().every_form(); }
TEST(CrossProductF32, TableFormsOfFloat16) { comparison<float, float, float16>().every_form(); }

}  // namespace
