{{ config(materialized='ephemeral') }}
select id from {{ ref('orders') }} where id > 1
