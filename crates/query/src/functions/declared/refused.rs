//! Functions of Doris that the server lacks, with the reason that a call of them gets.

/// Names in lower case, with blanks between them, and what to use in their place.
pub const ALL: &[(&str, &str)] = &[
    (
        "aes_encrypt aes_decrypt sm4_encrypt sm4_decrypt",
        "the server has no ciphers: encrypt values before they are loaded",
    ),
    (
        "ai_agg ai_classify ai_extract ai_filter ai_fixgrammar ai_generate ai_mask ai_sentiment ai_similarity ai_summarize \
         ai_translate embed",
        "the server has no language model",
    ),
    ("compress uncompress", "load the values as they are: data files are compressed"),
    ("convert_to", "texts are UTF-8 and ordered by their bytes"),
    (
        "datasketches_hll_union_agg",
        "sketches of Apache DataSketches are not read: use HLL columns with hll_union_agg",
    ),
    ("default", "the default of a column is in information_schema.columns"),
    ("esquery g", "it works in Doris only with its own catalogs and tests"),
    (
        "explode explode_outer posexplode posexplode_outer explode_split explode_split_outer explode_numbers \
         explode_numbers_outer explode_bitmap explode_bitmap_outer explode_map explode_map_outer explode_json_array_int \
         explode_json_array_int_outer explode_json_array_double explode_json_array_double_outer explode_json_array_string \
         explode_json_array_string_outer explode_json_array_json explode_json_array_json_outer explode_json_object json_each \
         json_each_outer json_each_text json_each_text_outer",
        "LATERAL VIEW is not supported: use unnest(array) in the SELECT list",
    ),
    (
        "bitmap_from_base64 bitmap_to_base64 hll_from_base64 hll_to_base64",
        "the bytes of BITMAP and HLL values differ from Doris's: use bitmap_to_string and bitmap_from_string",
    ),
    ("format_number printf", "use format, format_round or money_format"),
    (
        "int_to_uuid uuid_to_int uuid_numeric",
        "a UUID as a number has 39 digits and a LARGEINT 38: keep it as text",
    ),
    ("json_search json_hash json_extract_largeint", "use json_extract, or a hash of the text"),
    ("last_query_id", "the identifiers of queries are in the audit log"),
    (
        "nanosecond nanoseconds_add nanoseconds_sub nanoseconds_diff",
        "times have microseconds: use the function of that unit",
    ),
    (
        "quantile_union to_quantile_state quantile_state_empty quantile_percent",
        "QUANTILE_STATE columns are not read by functions: use percentile_approx over the values",
    ),
    ("sm3 sm3sum", "use sha2(text, 256)"),
    (
        "st_point st_x st_y st_astext st_aswkt st_asbinary st_geometrytype st_geometryfromtext st_geomfromtext \
         st_geometryfromwkb st_geomfromwkb st_linefromtext st_linestringfromtext st_polygon st_polyfromtext \
         st_polygonfromtext st_circle st_distance_sphere st_distance st_length st_angle_sphere st_angle st_azimuth \
         st_area_square_meters st_area_square_km st_contains st_intersects st_touches st_disjoint",
        "there are no spatial functions: compute with columns of coordinates",
    ),
    ("avg_map count_map max_map min_map sum_map", "aggregate the values of map_values"),
    ("parse_to_variant try_parse_to_variant variant_type", "a VARIANT column reads the text of a document"),
    (
        "ipv6_num_to_string ipv6_string_to_num ipv6_string_to_num_or_default ipv6_string_to_num_or_null inet6_ntoa inet6_aton \
         ipv4_to_ipv6 is_ipv4_compat is_ipv4_mapped ipv4_cidr_to_range ipv6_cidr_to_range cut_ipv6",
        "use to_ipv4, to_ipv6 and is_ip_address_in_range",
    ),
    (
        "from_hex to_hex from_base64_binary to_base64_binary sub_binary",
        "use hex, unhex, to_base64 and from_base64",
    ),
    ("tokenize", "texts are not indexed by words: use split_by_regexp"),
    ("unicode_normalize", "normalize texts before they are loaded"),
    ("xpath_string", "XML is not read: use regexp_extract"),
];
