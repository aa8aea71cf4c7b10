/// The compact coding: the same values as in JSON, in bytes that are fast to write and read.
///
///     payload  = format value                  ; format = 0x01
///     value    = head [rest]
///     head     = one byte: kind in the upper four bits, argument in the lower four
///                (15: the argument is 15 more than the varint that follows)
///     kind     0 simple      argument 0 null, 1 false, 2 true
///              1 natural     the argument is the number
///              2 negative    -1 minus the argument is the number
///              3 double      8 bytes, little-endian IEEE 754; argument 0
///              4 float       4 bytes, the same
///              5 string      as many bytes of UTF-8 as the argument says
///              6 bytes       as many bytes
///              7 array       as many values
///              8 object      as many members: key value
///     key      = varint     ; 2 n: n bytes of UTF-8 follow; 2 n + 1: the key number n again
///     varint   = LEB128, 7 bits a byte, the lowest first, in its shortest form
///
/// The first 32 keys are numbered from 0, in the order of their first appearance, so an array of a thousand
/// records names its fields only once. Values are decoded by key, as from JSON, and missing or unknown fields
/// mean the same in both codings. Enum cases and their fields are objects, again as in JSON. Members are
/// written in the order of their keys' bytes, so that a value has one form. Readers accept any order, but no
/// duplicate keys.
enum CompactFormat {
    static let format: UInt8 = 1
    /// The most keys that are numbered.
    static let keysMax = 32

    enum Kind: UInt8 {
        case simple = 0
        case natural = 1
        case negative = 2
        case double = 3
        case float = 4
        case string = 5
        case bytes = 6
        case array = 7
        case object = 8
    }
}
