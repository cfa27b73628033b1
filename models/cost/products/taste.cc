// Written by `foretrace fit-products`: what cuBLAS 13.1 chose for the products of
// reports/measured/products that are not held out; nvjet's (Half) from h200.csv, float32's from
// h200.csv, more_h200.csv, plain_h200.csv and plain_h100.csv.
#include "models/cost/products/choice.h"

namespace foretrace::products {

const Tastes& recorded_tastes() {
  static const Tastes kTastes{
      {Family::Half,
       {{
            {8, 64, false, 1.56},     {8, 128, false, 0.48},    {16, 64, false, 1.01},
            {32, 64, false, 3.04},    {32, 128, false, 2.31},   {32, 192, false, 0.43},
            {40, 64, false, 0.20},    {48, 128, false, 0.11},   {64, 8, false, 2.28},
            {64, 16, false, 1.24},    {64, 24, false, 0.62},    {64, 32, false, 3.08},
            {64, 40, false, 0.40},    {64, 48, false, 1.39},    {64, 64, false, 3.08},
            {64, 96, false, -0.05},   {64, 128, false, 1.89},   {64, 136, false, 0.39},
            {64, 256, false, 0.46},   {64, 336, false, -0.80},  {64, 512, true, -1.53},
            {72, 64, false, -0.04},   {80, 128, false, -1.10},  {96, 64, false, 1.98},
            {96, 128, false, 1.85},   {96, 256, true, -0.14},   {112, 64, false, 0.41},
            {112, 128, false, -1.37}, {128, 8, false, 0.49},    {128, 32, false, 1.97},
            {128, 48, false, 1.31},   {128, 64, false, 2.35},   {128, 96, false, 0.59},
            {128, 128, false, 1.34},  {128, 136, false, -1.82}, {128, 152, false, -1.81},
            {128, 160, false, 0.64},  {128, 192, true, 1.02},   {128, 256, true, 0.57},
            {128, 272, true, -3.47},  {128, 288, true, -3.52},  {144, 128, false, -1.59},
            {160, 64, false, -0.39},  {160, 128, false, -1.85}, {160, 256, true, -3.90},
            {168, 128, false, -1.84}, {176, 64, false, 0.24},   {176, 128, false, -2.72},
            {192, 64, false, 0.55},   {192, 96, false, -1.13},  {192, 128, true, 2.37},
            {192, 160, true, -1.60},  {192, 192, true, 0.51},   {208, 192, true, -3.53},
            {224, 128, true, -2.54},  {256, 64, false, -0.58},  {256, 120, true, -1.60},
            {256, 128, true, 1.55},   {256, 160, true, -3.07},  {288, 128, true, -2.73},
            {320, 64, false, 0.59},   {320, 128, true, 0.41},
        },
        {29.48, 6.74, 6.13, -3.02, 0.118}}},
      {Family::Float32,
       {{
            {32, 32, true, 1.03, 10, 1.000, false},
            {32, 64, true, 0.32, 8, 1.279, false},
            {32, 128, true, -0.97, 4, 0.940, false},
            {64, 32, true, -0.65, 8, 1.000, false},
            {64, 64, true, 1.75, 4, 0.937, false},
            {64, 128, true, 0.24, 2, 0.937, false},
            {64, 256, true, -2.01, 2, 0.931, false},
            {128, 64, true, 0.50, 2, 0.921, false},
            {128, 128, true, -0.95, 2, 0.921, false},
            {128, 256, true, 1.54, 1, 1.024, false},
            {256, 128, true, -0.60, 1, 1.048, false},
            {64, 64, true, -0.39, 6, 1.000, true},
            {64, 128, true, -1.44, 4, 1.000, true},
            {128, 32, true, 1.06, 6, 1.148, true},
            {128, 64, true, 1.41, 4, 1.000, true},
            {128, 128, true, -2.09, 2, 0.935, true},
            {128, 256, true, -0.82, 1, 0.983, true},
            {256, 128, true, 2.09, 1, 1.001, true},
        },
        {13.080, 2.022, -1.135, 1.482, 0.167, 3.293, -0.050, -0.200, -1.485, 0.355}}},
  };
  return kTastes;
}

}  // namespace foretrace::products
