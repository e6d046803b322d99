#include "rotations.inl"

namespace bench {

template std::function<void(std::size_t)> rotations(const query_and_key<rotary::float16>&,
                                                    const query_and_key<rotary::float16>&, const rotary::table<float>&,
                                                    const rotary::layout&, const rotary::slice&);
template std::function<void(std::size_t)> rotations(const query_and_key<rotary::float16>&,
                                                    const query_and_key<rotary::float16>&,
                                                    const rotary::table<rotary::float16>&, const rotary::layout&,
                                                    const rotary::slice&);

}  // namespace bench
