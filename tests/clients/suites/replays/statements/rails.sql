SET @@SESSION.sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout =
  2147483

SET NAMES utf8mb4, @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), ',NO_AUTO_VALUE_ON_ZERO'),
  @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483

-- rows VERSION()
SELECT VERSION()

-- rows @@max_allowed_packet
SELECT @@max_allowed_packet

SELECT GET_LOCK('2053462845', 0)

CREATE TABLE `schema_migrations` (`version` varchar(255) NOT NULL PRIMARY KEY)

CREATE TABLE `ar_internal_metadata` (`key` varchar(255) NOT NULL PRIMARY KEY, `value` varchar(255),
  `created_at` datetime(6) NOT NULL, `updated_at` datetime(6) NOT NULL)

SELECT `schema_migrations`.`version` FROM `schema_migrations` ORDER BY `schema_migrations`.`version` ASC

SELECT * FROM `ar_internal_metadata` WHERE `ar_internal_metadata`.`key` = 'environment' ORDER BY `ar_internal_metadata`.`key`
  ASC LIMIT 1

INSERT INTO `ar_internal_metadata` (`key`, `value`, `created_at`, `updated_at`)
  VALUES ('environment', 'test', '2024-01-02 03:04:05.678901', '2024-01-02 03:04:05.678901')

CREATE TABLE `authors` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `name` varchar(255), `bio` text, `rating` float,
  `active` tinyint(1) DEFAULT 1, `born` date, `meta` json, `created_at` datetime(6) NOT NULL, `updated_at` datetime(6) NOT NULL)

CREATE TABLE `books` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `title` varchar(255) NOT NULL, `price` decimal(10,2),
  `author_id` bigint NOT NULL, `cover` blob, INDEX `index_books_on_author_id`  (`author_id`),
  CONSTRAINT `fk_rails_53d51ce16a` FOREIGN KEY (`author_id`) REFERENCES `authors` (`id`)
)

INSERT INTO `schema_migrations` (`version`) VALUES ('20240101000000')

SELECT RELEASE_LOCK('2053462845')

-- rows Field, Type, Collation, Null, Key, Default, Extra, Comment
SHOW FULL FIELDS FROM `authors`

-- rows column_name
SELECT column_name FROM information_schema.statistics WHERE index_name = 'PRIMARY' AND table_schema = database()
  AND table_name = 'authors' ORDER BY seq_in_index

-- rows Key_name, Column_name, Index_type, Non_unique, Sub_part
SHOW KEYS FROM `books`

-- rows Create Table
SHOW CREATE TABLE `authors`

-- rows table_name
SELECT table_name FROM (SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = database()) _subquery
  WHERE _subquery.table_type = 'BASE TABLE'

-- rows table_name
SELECT table_name FROM (SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = database()) _subquery
  WHERE _subquery.table_type = 'VIEW'

SELECT fk.referenced_table_name AS 'to_table', fk.referenced_column_name AS 'primary_key', fk.column_name AS 'column',
  fk.constraint_name AS 'name', fk.ordinal_position AS 'position', rc.update_rule AS 'on_update', rc.delete_rule AS 'on_delete'
  FROM information_schema.referential_constraints rc JOIN information_schema.key_column_usage fk
  USING (constraint_schema, constraint_name) WHERE fk.referenced_column_name IS NOT NULL AND fk.table_schema = database()
  AND fk.table_name = 'books' AND rc.constraint_schema = database() AND rc.table_name = 'books'

SELECT cc.constraint_name AS 'name', cc.check_clause AS 'expression' FROM information_schema.check_constraints cc
  JOIN information_schema.table_constraints tc USING (constraint_schema, constraint_name)
  WHERE tc.table_schema = database() AND tc.table_name = 'books' AND cc.constraint_schema = database()

-- rows table_comment
SELECT table_comment FROM information_schema.tables WHERE table_schema = database() AND table_name = 'books'

-- rows db
SELECT DATABASE() as db

-- rows Variable_name, Value
SHOW VARIABLES LIKE 'collation_database'

INSERT INTO `authors` (`name`, `bio`, `rating`, `active`, `born`, `meta`, `created_at`, `updated_at`)
  VALUES ('Ann', NULL, 1.5, 1, '1980-02-29', '{\"a\":1}', '2024-01-02 03:04:05.678901', '2024-01-02 03:04:05.678901')

INSERT INTO `books` (`title`, `price`, `author_id`, `cover`) VALUES ('One', 1.5, 1, NULL)

-- rows id, name
SELECT `authors`.* FROM `authors` ORDER BY `authors`.`id` ASC LIMIT 1

-- rows one
SELECT 1 AS one FROM `authors` WHERE `authors`.`name` = 'Ann' LIMIT 1

UPDATE `authors` SET `authors`.`name` = 'Bea', `authors`.`updated_at` = '2024-01-02 03:04:06' WHERE `authors`.`id` = 1

-- rows id
SELECT DISTINCT `authors`.* FROM `authors` INNER JOIN `books` ON `books`.`author_id` = `authors`.`id` WHERE `books`.`title` LIKE
  'O%'

SELECT COUNT(*) AS `count_all`, `books`.`author_id` AS `books_author_id` FROM `books` GROUP BY `books`.`author_id`

INSERT INTO `books` (`id`,`title`,`author_id`) VALUES (7, 'Seven', 1) ON DUPLICATE KEY UPDATE
  `title`=VALUES(`title`),`author_id`=VALUES(`author_id`)

INSERT INTO `books` (`id`,`title`,`author_id`) VALUES (7, 'Eight', 1) ON DUPLICATE KEY UPDATE `id`=`id`

UPDATE `books` SET `books`.`price` = COALESCE(`books`.`price`, 0) + 1 WHERE `books`.`id` = 7

DELETE FROM `books` WHERE `books`.`id` = 7

BEGIN

SELECT `authors`.* FROM `authors` WHERE `authors`.`id` = 1 LIMIT 1 FOR UPDATE

SAVEPOINT active_record_1

RELEASE SAVEPOINT active_record_1

COMMIT

SET TRANSACTION ISOLATION LEVEL READ COMMITTED

EXPLAIN SELECT `authors`.* FROM `authors`

ALTER TABLE `books` ADD `isbn` varchar(255)

CREATE UNIQUE INDEX `index_books_on_isbn` ON `books` (`isbn`)

DROP INDEX `index_books_on_isbn` ON `books`

ALTER TABLE `books` CHANGE `isbn` `code` varchar(255) DEFAULT NULL

ALTER TABLE `books` ALTER COLUMN `title` SET DEFAULT 'x'

ALTER TABLE `books` DROP COLUMN `price`

SELECT @@FOREIGN_KEY_CHECKS

SET FOREIGN_KEY_CHECKS = 0

TRUNCATE TABLE `books`

DROP TABLE IF EXISTS `books` CASCADE

DROP TABLE `authors`, `schema_migrations`, `ar_internal_metadata` CASCADE
