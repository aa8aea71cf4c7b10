#pragma once

// Nothing to call: a program that is linked with this fills its standard descriptors as it starts.
