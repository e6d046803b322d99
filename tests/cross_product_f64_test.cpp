// The cross product with double tensors, and with double rows.
#include "cross_product.hpp"

namespace {

using cross_product::comparison;

TEST(CrossProductF64, Layouts) { comparison<double, double, double>().every_layout(); }
TEST(CrossProductF64, TableForms) { comparison<double, double, double>().every_form(); }
TEST(CrossProductF64, TableFormsOfFloat) { comparison<double, double, float>().every_form(); }
TEST(CrossProductF64, TableFormsOfDoubleForFloat) { comparison<float, float, double>().every_form(); }

}  // namespace
