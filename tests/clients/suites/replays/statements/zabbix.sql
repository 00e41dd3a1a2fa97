select '1'

-- rows version()
select version()

-- rows Variable_name, Value
show global status

-- rows Variable_name, Value
show global variables

-- rows Database
show databases

-- rows size
select coalesce(sum(data_length + index_length),0) as size from information_schema.tables where table_schema='shop'

show slave status

show replica status

-- rows Variable_name, Value
show global status where Variable_name in ('Uptime', 'Questions', 'Threads_connected')

-- rows Variable_name, Value
show variables like 'max_connections'

select count(*) from information_schema.processlist where command != 'Sleep'
