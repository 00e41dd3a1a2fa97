{{ config(materialized='view') }}
select name as n, sum(amount) as total from {{ ref('orders') }} group by name
