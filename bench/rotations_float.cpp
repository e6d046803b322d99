#include "rotations.inl"

namespace bench {

template std::function<void(std::size_t)> rotations(const query_and_key<float>&, const query_and_key<float>&,
                                                    const rotary::table<float>&, const rotary::layout&,
                                                    const rotary::slice&);
template std::function<void(std::size_t)> rotations(const query_and_key<double>&, const query_and_key<double>&,
                                                    const rotary::table<double>&, const rotary::layout&,
                                                    const rotary::slice&);

}  // namespace bench
