-- The statements with which Prisma's migrations look at a database.

-- rows @@version
SELECT @@version, @@GLOBAL.lower_case_table_names

SELECT GET_LOCK('prisma_migrate', 10)

SELECT schema_name AS db_name FROM information_schema.schemata WHERE schema_name = 'shop'

-- rows table_name, create_options, table_comment
SELECT DISTINCT BINARY table_info.table_name AS table_name, table_info.create_options AS create_options,
  table_info.table_comment AS table_comment
  FROM information_schema.tables AS table_info
  JOIN information_schema.columns AS column_info ON BINARY column_info.table_name = BINARY table_info.table_name
  WHERE table_info.table_schema = 'shop' AND column_info.table_schema = 'shop' AND table_info.table_type = 'BASE TABLE'
  ORDER BY BINARY table_info.table_name

-- rows column_name, data_type, full_data_type, numeric_precision, column_default, is_nullable, extra, table_name
SELECT column_name column_name, data_type data_type, column_type full_data_type,
  character_maximum_length character_maximum_length, numeric_precision numeric_precision, numeric_scale numeric_scale,
  datetime_precision datetime_precision, column_default column_default, is_nullable is_nullable, extra extra,
  table_name table_name, IF(column_comment = '', NULL, column_comment) AS column_comment
  FROM information_schema.columns WHERE table_schema = 'shop' ORDER BY ordinal_position

-- rows table_name, index_name, column_name, partial, seq_in_index, column_order, non_unique, index_type
SELECT table_name AS table_name, index_name AS index_name, column_name AS column_name, sub_part AS partial,
  seq_in_index AS seq_in_index, collation AS column_order, non_unique AS non_unique, index_type AS index_type
  FROM information_schema.statistics WHERE table_schema = 'shop'
  ORDER BY BINARY table_name, BINARY index_name, seq_in_index

SELECT kcu.constraint_name constraint_name, kcu.column_name column_name, kcu.referenced_table_name referenced_table_name,
  kcu.referenced_column_name referenced_column_name, kcu.ordinal_position ordinal_position, kcu.table_name table_name,
  rc.delete_rule delete_rule, rc.update_rule update_rule
  FROM information_schema.key_column_usage AS kcu
  INNER JOIN information_schema.referential_constraints AS rc ON BINARY kcu.constraint_name = BINARY rc.constraint_name
  WHERE BINARY kcu.table_schema = 'shop' AND BINARY rc.constraint_schema = 'shop' AND kcu.referenced_column_name IS NOT NULL
  ORDER BY BINARY kcu.table_schema, BINARY kcu.table_name, BINARY kcu.constraint_name, kcu.ordinal_position

SELECT routine_name AS name, routine_definition AS definition FROM information_schema.routines
  WHERE ROUTINE_SCHEMA = 'shop' AND ROUTINE_TYPE = 'PROCEDURE'

-- rows view_name, view_sql
SELECT TABLE_NAME AS view_name, VIEW_DEFINITION AS view_sql FROM INFORMATION_SCHEMA.VIEWS WHERE TABLE_SCHEMA = 'shop'

SELECT tc.table_schema AS namespace, tc.table_name AS table_name, tc.constraint_name AS constraint_name,
  LOWER(tc.constraint_type) AS constraint_type, cc.check_clause AS constraint_definition
  FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS tc
  LEFT JOIN INFORMATION_SCHEMA.CHECK_CONSTRAINTS cc
    ON cc.constraint_schema = tc.table_schema AND cc.constraint_name = tc.constraint_name
  WHERE tc.table_schema = 'shop' AND tc.constraint_type = 'CHECK'
  ORDER BY tc.table_schema, tc.table_name, tc.constraint_name

CREATE TABLE _prisma_migrations (
    id                      VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum                VARCHAR(64) NOT NULL,
    finished_at             DATETIME(3),
    migration_name          VARCHAR(255) NOT NULL,
    logs                    TEXT,
    rolled_back_at          DATETIME(3),
    started_at              DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    applied_steps_count     INTEGER UNSIGNED NOT NULL DEFAULT 0
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci

INSERT INTO `_prisma_migrations` (`id`,`checksum`,`started_at`,`migration_name`) VALUES ('1','c','2024-01-02 03:04:05','first')

UPDATE `_prisma_migrations` SET `applied_steps_count` = `applied_steps_count` + 1 WHERE `id` = '1'

-- rows id, checksum, applied_steps_count
SELECT `id`,`checksum`,`finished_at`,`migration_name`,`logs`,`rolled_back_at`,`started_at`,`applied_steps_count`
  FROM `_prisma_migrations` ORDER BY `started_at` ASC

SELECT RELEASE_LOCK('prisma_migrate')
