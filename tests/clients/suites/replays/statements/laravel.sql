use `shop`

SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci',
  SESSION sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'

-- rows exists
select exists (select 1 from information_schema.tables where table_schema = schema() and table_name = 'migrations'
  and table_type in ('BASE TABLE', 'SYSTEM VERSIONED')) as `exists`

create table `migrations` (`id` int unsigned not null auto_increment primary key, `migration` varchar(255) not null,
  `batch` int not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci'

select `migration` from `migrations` order by `batch` asc, `migration` asc

-- rows aggregate
select max(`batch`) as aggregate from `migrations`

create table `users` (`id` bigint unsigned not null auto_increment primary key, `name` varchar(255) not null,
  `email` varchar(255) not null, `email_verified_at` timestamp null, `password` varchar(255) not null,
  `remember_token` varchar(100) null, `created_at` timestamp null, `updated_at` timestamp null)
  default character set utf8mb4 collate 'utf8mb4_unicode_ci'

alter table `users` add unique `users_email_unique`(`email`)

create table `sessions` (`id` varchar(255) not null, `user_id` bigint unsigned null, `ip_address` varchar(45) null,
  `user_agent` text null, `payload` longtext not null, `last_activity` int not null, primary key (`id`))
  default character set utf8mb4 collate 'utf8mb4_unicode_ci'

alter table `sessions` add index `sessions_user_id_index`(`user_id`)

create table `jobs` (`id` bigint unsigned not null auto_increment primary key, `queue` varchar(255) not null,
  `payload` longtext not null, `attempts` tinyint unsigned not null, `reserved_at` int unsigned null,
  `available_at` int unsigned not null, `created_at` int unsigned not null)
  default character set utf8mb4 collate 'utf8mb4_unicode_ci'

create table `posts` (`id` bigint unsigned not null auto_increment primary key, `user_id` bigint unsigned not null,
  `meta` json null, `price` decimal(8, 2) not null default '0', `state` enum('draft', 'done') not null default 'draft')
  default character set utf8mb4 collate 'utf8mb4_unicode_ci'

alter table `posts` add constraint `posts_user_id_foreign` foreign key (`user_id`) references `users` (`id`) on delete cascade

insert into `migrations` (`migration`, `batch`) values ('0001_01_01_000000_create_users_table', 1)

insert into `users` (`name`, `email`, `password`, `updated_at`, `created_at`)
  values ('Ann', 'ann@example.org', 'x', '2024-01-02 03:04:05', '2024-01-02 03:04:05')

-- rows id, name
select * from `users` where `email` = 'ann@example.org' limit 1

-- rows aggregate
select count(*) as aggregate from `users`

-- rows exists
select exists(select * from `users` where `name` = 'Ann') as `exists`

update `users` set `name` = 'Bea', `users`.`updated_at` = '2024-01-02 03:04:05' where `id` = 1

insert into `sessions` (`id`, `payload`, `last_activity`) values ('a', 'p', 1) on duplicate key update `payload` =
  values(`payload`), `last_activity` = values(`last_activity`)

insert ignore into `sessions` (`id`, `payload`, `last_activity`) values ('a', 'q', 2)

delete from `sessions` where `last_activity` <= 0

insert into `jobs` (`queue`, `attempts`, `reserved_at`, `available_at`, `created_at`, `payload`) values ('default', 0, null, 1,
  1, '{}')

-- rows id, queue
select * from `jobs` where `queue` = 'default' and ((`reserved_at` is null and `available_at` <= 5) or (`reserved_at` <= 3))
  order by `id` asc limit 1 FOR UPDATE SKIP LOCKED

update `jobs` set `reserved_at` = 5, `attempts` = 1 where `id` = 1

delete from `jobs` where `id` = 1

insert into `posts` (`user_id`, `meta`) values (1, '{"a": {"b": "c"}}')

select * from `posts` where json_unquote(json_extract(`meta`, '$."a"."b"')) = 'c'

select * from `posts` where json_contains(`meta`, '"c"', '$."a"."b"')

update `posts` set `meta` = json_set(`meta`, '$."a"."b"', 'd') where `id` = 1

select `users`.*, (select count(*) from `posts` where `users`.`id` = `posts`.`user_id`) as `posts_count` from `users`

select * from `users` where exists (select * from `posts` where `users`.`id` = `posts`.`user_id`)

select * from `posts` where `posts`.`user_id` in (1, 2) order by rand() limit 3

select * from `users` where date(`created_at`) = '2024-01-02' order by `created_at` desc limit 15 offset 0

-- rows name, schema, size, comment, engine, collation
select table_name as `name`, table_schema as `schema`, (data_length + index_length) as `size`, table_comment as `comment`,
  engine as `engine`, table_collation as `collation` from information_schema.tables
  where table_type in ('BASE TABLE', 'SYSTEM VERSIONED') and table_schema = 'shop' order by table_schema, table_name

-- rows name, schema, definition
select table_name as `name`, table_schema as `schema`, view_definition as `definition` from information_schema.views
  where table_schema = 'shop' order by table_schema, table_name

-- rows name, type_name, type, collation, nullable, default, comment, expression, extra
select column_name as `name`, data_type as `type_name`, column_type as `type`, collation_name as `collation`,
  is_nullable as `nullable`, column_default as `default`, column_comment as `comment`, generation_expression as `expression`,
  extra as `extra` from information_schema.columns where table_schema = schema() and table_name = 'users' order by
  ordinal_position asc

-- rows name, columns, type, unique
select index_name as `name`, group_concat(column_name order by seq_in_index) as `columns`, index_type as `type`,
  not non_unique as `unique` from information_schema.statistics where table_schema = schema() and table_name = 'users'
  group by index_name, index_type, non_unique

select kc.constraint_name as `name`, group_concat(kc.column_name order by kc.ordinal_position) as `columns`,
  kc.referenced_table_schema as `foreign_schema`, kc.referenced_table_name as `foreign_table`,
  group_concat(kc.referenced_column_name order by kc.ordinal_position) as `foreign_columns`, rc.update_rule as `on_update`,
  rc.delete_rule as `on_delete` from information_schema.key_column_usage kc join information_schema.referential_constraints rc
  on kc.constraint_schema = rc.constraint_schema and kc.constraint_name = rc.constraint_name
  where kc.table_schema = schema() and kc.table_name = 'users' and kc.referenced_table_name is not null
  group by kc.constraint_name, kc.referenced_table_schema, kc.referenced_table_name, rc.update_rule, rc.delete_rule

alter table `users` add `phone` varchar(20) null after `email`

alter table `users` modify `phone` varchar(40) null

alter table `users` rename column `phone` to `mobile`

alter table `users` drop `mobile`

alter table `users` drop index `users_email_unique`

rename table `posts` to `articles`

START TRANSACTION

insert into `sessions` (`id`, `payload`, `last_activity`) values ('b', 'p', 1)

SAVEPOINT trans2

ROLLBACK TO SAVEPOINT trans2

COMMIT

truncate table `sessions`

SET FOREIGN_KEY_CHECKS=0

drop table `articles`, `jobs`, `migrations`, `sessions`, `users`

SET FOREIGN_KEY_CHECKS=1
