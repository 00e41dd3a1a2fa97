{{ config(materialized='table') }}
select id, name, amount, day from {{ ref('raw_orders') }}
